// pg-boss: 1,000 jobs for each call of the handler, fetched on while batches come full.
import { PgBoss } from "pg-boss";
import { count, main, stamp, url } from "./common.mjs";

const BATCH = 1000;

function boss(options) {
  const made = new PgBoss({ connectionString: url, ...options });
  made.on("error", console.error);
  return made;
}

const quiet = { supervise: false, schedule: false };

await main({
  name: "pg-boss",
  mode: `batchSize=${BATCH}: one handler call a batch, burstWhenBatchFull, LISTEN`,
  keeps: "the job's row",

  async install() {
    const made = await boss(quiet).start();
    for (const queue of ["noop", "stamp"]) await made.createQueue(queue, { notify: true });
    await made.stop();
  },

  async sending() {
    const made = await boss(quiet).start();
    return {
      async fill(jobs) {
        for (let rest = jobs; rest > 0; rest -= BATCH) {
          await made.insert("noop", Array.from({ length: Math.min(rest, BATCH) }, () => ({})));
        }
      },
      enqueue: () => made.send("noop", {}),
      stamp: (number) => made.send("stamp", { number }),
      close: () => made.stop(),
    };
  },

  async work() {
    const made = await boss({ useListenNotify: true }).start();
    const options = { batchSize: BATCH, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
    await made.work("noop", options, async (jobs) => count(jobs.length));
    await made.work("stamp", options, async (jobs) => jobs.forEach((job) => stamp(job.data.number)));
    process.on("SIGTERM", () => made.stop().then(() => process.exit(0)));
  },
});
