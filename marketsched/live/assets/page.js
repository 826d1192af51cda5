"use strict";
// What the service answers is set as text, never as markup. The token is in this variable alone.
let token = "";
let role = "";
let open = 0; // the open round
let failed = false; // the last look
const OPEN = ["submitted", "arrived", "running"];
const MOST = 500; // jobs in the table, the newest
let jobs = new Map(); // by name, in order of submission
const SECONDS = 5; // between two looks
const SHOWN = 48; // rounds whose prices are drawn
const at = (id) => document.getElementById(id);
const money = (amount) =>
  amount === null || amount === undefined
    ? ""
    : amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 });

async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const said = await answer.json();
  if (!answer.ok) {
    const problem = new Error(said.detail || answer.statusText);
    problem.status = answer.status;
    throw problem;
  }
  return said;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// columns: [title, function of a row, whether it is a number]
function table(rows, columns, otherwise) {
  if (!rows.length) return element("p", otherwise);
  const made = element("table");
  const head = made.createTHead().insertRow();
  for (const [title, , number] of columns) head.append(element("th", title, number ? "number" : ""));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const [title, value, number] of columns) {
      const shown = value(row);
      const cell = element("td", shown === null || shown === undefined ? "" : String(shown), number ? "number" : "");
      cell.setAttribute("data-title", title); // on a narrow screen it stands before the value
      line.append(cell);
    }
  }
  return made;
}

function drawn(values, first, what, shown = money) {
  const SVG = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(SVG, "svg");
  const highest = Math.max(...values.map((value) => value ?? 0), 1e-9);
  picture.setAttribute("viewBox", `0 0 ${Math.max(SHOWN, values.length) * 10} 120`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${what} of ${values.length} rounds from round ${first} on, at most ${shown(highest)}`);
  values.forEach((value, n) => {
    if (value === null) return; // not on sale
    const bar = document.createElementNS(SVG, "rect");
    const height = Math.max(1, (110 * value) / highest);
    const fields = { x: n * 10 + 1, width: 8, y: 120 - height, height };
    for (const [name, value] of Object.entries(fields)) bar.setAttribute(name, String(value));
    const words = document.createElementNS(SVG, "title");
    words.textContent = `round ${first + n}: ${shown(value)}`;
    bar.append(words);
    picture.append(bar);
  });
  return picture;
}

function showMarket(market) {
  open = market.round;
  document.title = at("name").textContent = market.name;
  const ends = market.clock.round_ends ? `, ends ${new Date(market.clock.round_ends).toLocaleTimeString()}` : "";
  at("state").textContent = market.over ? "the market is over" : `${market.mechanism}, round ${market.round}${ends}`;
  const queue = market.waiting_at_most ? `up to ${market.waiting_at_most} jobs wait` : "no job waits";
  at("load").textContent = `${market.busy} of ${market.usable_nodes ?? market.capacity} nodes are busy; ${queue}`;
  at("promises").textContent = `What this market promises: ${market.promises}.`;
  const past = market.last_rounds;
  if (past.length) {
    const waiting = Math.max(...past.map(([, , most]) => most));
    const words = `Busy nodes of the last ${past.length} rounds; ${waiting ? `at most ${waiting}` : "no"} jobs waited.`;
    const loads = past.map(([, load]) => load);
    at("past").replaceChildren(element("p", words), drawn(loads, past[0][0], "Load", String));
  }
  const prices = (market.prices ?? []).slice(0, SHOWN);
  if (!prices.length) {
    at("prices").replaceChildren(element("p", "This market has no price for each node and round."));
    return;
  }
  const now = prices[0] === null ? "not on sale" : money(prices[0]);
  const words = `Credits for a node and round; now ${now}. The bars are rounds ${open} to ${open + prices.length - 1}.`;
  at("prices").replaceChildren(element("p", words), drawn(prices, open, "Prices"));
}

function showAccount(account) {
  const limit = account.limit === null ? "" : `; plans may bring it down to -${money(account.limit)}`;
  at("account").replaceChildren(element("p", `${account.owner} (${account.role}): ${money(account.balance)} credits${limit}`));
  at("account-part").hidden = false;
}

function showJobs() {
  const columns = [
    ["job", (job) => job.job],
    ["state", (job) => (job.outcome ? `${job.state}, ${job.outcome}` : job.state)],
    ["nodes", (job) => job.nodes, true],
    ["submitted", (job) => job.submitted, true],
    ["start", (job) => job.start, true],
    ["end", (job) => job.end, true],
    ["charge", (job) => money(job.charge), true],
    ["why", (job) => job.reason],
  ];
  if ([...jobs.values()].some((job) => job.class)) columns.splice(3, 0, ["class", (job) => job.class]);
  at("jobs").replaceChildren(table([...jobs.values()].reverse(), columns, "No job so far."));
  at("jobs-part").hidden = false;
}

// All jobs once; from then on the open ones, and those that were open before.
async function lookAtJobs() {
  const before = [...jobs.values()].filter((job) => OPEN.includes(job.state));
  const now = new Set();
  const looked = jobs.size > 0;
  for (const state of looked ? OPEN : [""]) {
    const found = await pages(state ? `&state=${state}` : "");
    for (const job of found) {
      now.add(job.job);
      jobs.set(job.job, job);
    }
  }
  for (const { job } of before) if (!now.has(job)) jobs.set(job, await ask(`/v1/jobs/${encodeURIComponent(job)}`));
  for (const job of [...jobs.keys()].slice(0, Math.max(0, jobs.size - MOST))) jobs.delete(job);
}

async function pages(which) {
  const found = [];
  let after = "";
  for (;;) {
    const page = await ask(`/v1/jobs?limit=500${which}${after && `&after=${encodeURIComponent(after)}`}`);
    found.push(...page.jobs);
    if (!page.more) return found;
    after = page.jobs[page.jobs.length - 1].job;
  }
}

async function showOwn() {
  if (role === "reader") return;
  const [mine, account] = [token, await ask("/v1/account")];
  await lookAtJobs();
  if (mine !== token) return; // it was forgotten meanwhile
  showAccount(account);
  showJobs();
  at("quote-part").hidden = role !== "owner";
  if (role === "operator") {
    const columns = [
      ["account", (each) => each.owner],
      ["role", (each) => each.role],
      ["balance", (each) => money(each.balance), true],
      ["limit", (each) => money(each.limit), true],
    ];
    const { owners } = await ask("/v1/owners");
    if (mine !== token) return;
    at("owners").replaceChildren(table(owners, columns, "No account."));
    at("owners-part").hidden = false;
  }
}

async function look() {
  try {
    showMarket(await ask(`/v1/public?rounds=${SHOWN}`));
    if (token) await showOwn();
    if (failed) at("trouble").textContent = ""; // what was said of a token stays
    failed = false;
  } catch (problem) {
    failed = problem.status !== 401;
    if (!failed) forget();
    at("trouble").textContent = problem.message;
  }
}

function forget() {
  token = role = "";
  jobs = new Map();
  at("token").value = "";
  at("forget").hidden = true;
  for (const part of ["account", "quote", "jobs", "owners"]) at(`${part}-part`).hidden = true;
  for (const part of ["account", "quoted", "jobs", "owners"]) at(part).replaceChildren();
}

at("forget").addEventListener("click", forget);

at("access").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = at("token").value.trim();
  forget();
  token = typed;
  try {
    role = (await ask("/v1/account")).role;
  } catch (problem) {
    if (problem.status !== 403) {
      forget();
      at("trouble").textContent = problem.message;
      return;
    }
    role = "reader";
  }
  at("forget").hidden = false;
  at("trouble").textContent = "";
  await look();
});

at("quote").addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = Object.fromEntries([...new FormData(event.target)].map(([name, text]) => [name, Number(text)]));
  const arrival = open + said.later;
  const sow = {
    concurrency: said.nodes,
    value: { kind: "deadline", value: said.value, deadline: open + said.deadline },
    requirements: [{ arrival, duration: said.duration, probability: 1 }],
  };
  try {
    const offer = await ask("/v1/quotes", { sow });
    if (offer.in_words) {
      at("quoted").replaceChildren(...offer.in_words.split(". ").map((words) => element("p", `${words}.`)));
      return;
    }
    const columns = [
      ["start in round", (run) => run.start, true],
      ["price", (run) => money(run.price), true],
      ["may be evicted, at most", (run) => `${(100 * run.failure).toFixed(0)} %`, true],
    ];
    const otherwise =
      offer.decided === "at arrival"
        ? "This market sets start and price when the job arrives; the prices above are those of now."
        : "No start is worth its price.";
    const fee = element("p", `If it does not come: ${money(offer.no_show_fee)} credits.`);
    at("quoted").replaceChildren(table(offer.runs, columns, otherwise), fee);
  } catch (problem) {
    at("quoted").replaceChildren(element("p", problem.message));
  }
});

look();
setInterval(look, SECONDS * 1000);
