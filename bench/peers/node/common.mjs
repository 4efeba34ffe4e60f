// What the programs of the peers on Node share: the verbs, counting, stamping, arrivals.
import { fork } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const url = process.env.BENCH_URL;

const count8 = Buffer.alloc(8);
let countFile;
let done = 0n;

export function count(jobs = 1) {
  if (countFile === undefined) {
    mkdirSync(process.env.BENCH_COUNTS, { recursive: true });
    countFile = openSync(join(process.env.BENCH_COUNTS, String(process.pid)), "w");
  }
  done += BigInt(jobs);
  count8.writeBigInt64LE(done);
  writeSync(countFile, count8, 0, 8, 0);
}

let stampFile;

export function stamp(number) {
  const line = Buffer.alloc(16);
  line.writeDoubleLE(realtime(), 8);
  line.writeBigInt64LE(BigInt(number), 0);
  stampFile ??= openSync(process.env.BENCH_STAMPS, "a");
  writeSync(stampFile, line);
}

// Seconds since 1970; Date.now() alone has only milliseconds.
function realtime() {
  return (performance.timeOrigin + performance.now()) / 1000;
}

export async function timed(work) {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

export function oneByOne(jobs, send) {
  return timed(async () => {
    for (let number = 0; number < jobs; number++) await send();
  });
}

// Poisson arrivals from a seed, by a generator of its own: Python's is not to be had here.
async function arrivals(rate, seconds, seed, send) {
  const sent = [];
  const chance = uniform(seed);
  const began = performance.now();
  let at = -Math.log(1 - chance()) / rate;
  for (let number = 0; at < seconds; number++) {
    const left = began + at * 1000 - performance.now();
    if (left > 0) await sleep(left);
    sent.push(realtime());
    await send(number);
    at -= Math.log(1 - chance()) / rate;
  }
  return sent;
}

// A linear congruential generator of 32 bits, scaled to [0, 1).
function uniform(seed) {
  let state = BigInt(seed);
  return () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 32n) / 2 ** 32;
  };
}

function version(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

// The worker stops by SIGTERM: here, or in each child process.
function work(children, begin) {
  if (children === 1) return begin();
  const processes = Array.from({ length: children }, () => fork(process.argv[1], ["work", "1"]));
  process.on("SIGTERM", () => processes.forEach((child) => child.kill("SIGTERM")));
  return Promise.all(processes.map((child) => new Promise((end) => child.on("exit", end))));
}

// `sending` opens a producer: { fill(jobs), enqueue(), stamp(number), close() }.
export async function main(program) {
  const [verb, ...words] = process.argv.slice(2);
  if (process.send) process.on("disconnect", () => process.exit(1));
  if (verb === "about") {
    const { name, mode, keeps } = program;
    return console.log(JSON.stringify({ name, version: version(name), mode, keeps }));
  }
  if (verb === "work") return work(Number(words[0]), program.work);
  if (verb === "install") {
    await program.install();
    return console.log("{}");
  }
  const sending = await program.sending();
  let answer;
  if (verb === "fill") answer = { seconds: await timed(() => sending.fill(Number(words[0]))) };
  if (verb === "enqueue") answer = { seconds: await oneByOne(Number(words[0]), sending.enqueue) };
  if (verb === "arrive") answer = { sent: await arrivals(...words.map(Number), sending.stamp) };
  await sending.close();
  if (!answer) throw new Error("about | install | fill | enqueue | arrive | work");
  console.log(JSON.stringify(answer));
}
