// graphile-worker: the batching of its page on performance.
import { count, main, stamp, url } from "./common.mjs";

process.env.NO_LOG_SUCCESS = "1"; // As its own measurement runs; read when it is loaded.
const { makeWorkerUtils, run, runMigrations } = await import("graphile-worker");

const BATCH = 1000;

await main({
  name: "graphile-worker",
  mode: "concurrentJobs=24, localQueue.size=500, completeJobBatchDelay=0, LISTEN",
  keeps: "nothing",

  install: () => runMigrations({ connectionString: url }),

  async sending() {
    const utils = await makeWorkerUtils({ connectionString: url });
    return {
      async fill(jobs) {
        for (let rest = jobs; rest > 0; rest -= BATCH) {
          const length = Math.min(rest, BATCH);
          await utils.addJobs(Array.from({ length }, () => ({ identifier: "noop", payload: {} })));
        }
      },
      enqueue: () => utils.addJob("noop", {}),
      stamp: (number) => utils.addJob("stamp", { number }),
      close: () => utils.release(),
    };
  },

  async work() {
    const worker = {
      connectionString: url,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    };
    const taskList = { noop: () => count(), stamp: ({ number }) => stamp(number) };
    await (await run({ preset: { worker }, taskList })).promise;
  },
});
