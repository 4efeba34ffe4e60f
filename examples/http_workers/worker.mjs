// A whole worker over HTTP, in Node: it doubles numbers. TENURE_URL and TENURE_TOKEN say where and who.
const { TENURE_URL: url, TENURE_TOKEN: token } = process.env;
let session = null;
let stopping = false;
process.on("SIGTERM", () => { stopping = true; });

async function say(verb, body, within = 10_000) {
  const answer = await fetch(`${url}/v1/leases:${verb}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(within),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(`${said.code}: ${said.detail}`);
  return said;
}

async function run(job) {
  const renewing = setInterval(() => {
    say("renew", { leases: [job.lease] }).catch((error) => console.error(error.message));
  }, job.renew_in_ms);
  let end;
  try {
    end = ["complete", { lease: job.lease, result: 2 * job.args.number }];
  } catch (error) {
    end = ["fail", { lease: job.lease, error: { type: error.name, message: error.message } }];
  }
  // Saying it twice is harmless; what cannot be said before the lease ends runs elsewhere.
  for (let tries = 0; tries < 5; tries += 1) {
    try { await say(...end); break; } catch (error) { console.error(error.message); }
  }
  clearInterval(renewing);
}

while (!stopping) {
  const worker = { name: `node-${process.pid}`, language: "node" };
  try {
    const got = await say("acquire", { queues: ["numbers"], worker, session, count: 4, holding: 0, wait: 5 }, 20_000);
    session = got.session;
    await Promise.all(got.jobs.map(run));
  } catch (error) {
    console.error(error.message);
    await new Promise((done) => setTimeout(done, 500));
  }
}
