// Fetches /api/stats every second while somebody looks, and writes the numbers into the page.
// Everything is set as text, never as markup: what callers named their lanes and groups stays harmless.

const EVERY_MS = 1000;
const STATES = { succeeded: "good", claimed: "busy", dispatched: "busy", running: "busy", dead: "bad",
  held: "wait", expired: "wait", waiting: "", pending: "" };
const COLUMNS = ["pending", "due", "claimed", "dispatched", "running", "held", "dead", "sent/s", "lag p99", "oldest due"];

const at = (id) => document.getElementById(id);
let seen = 0;

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function whole(number) {
  return number.toLocaleString("en-US");
}

function span(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

function lag(milliseconds) {
  return milliseconds === null ? "–" : span(milliseconds / 1000);
}

function due(lane) {
  if (lane.due === null) return "some";
  return whole(lane.due) + (lane.due_capped ? "+" : "");
}

function pairs(element, facts) {
  element.replaceChildren(...facts.map(([name, value, style]) => {
    const pair = make("div", undefined, style);
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
}

function showNode(stats) {
  const node = stats.node;
  pairs(at("node"), [
    ["node", node.id === null ? "starting" : `${node.id} ${node.name}`],
    ["leader", stats.leader === null ? "none" : stats.leader === node.id ? "this node" : `node ${stats.leader}`],
    ["nodes", whole(stats.nodes.length)],
    ["store", node.store || "–"],
    ["up", span(node.uptime_s)],
  ]);
}

function showTotals(lanes) {
  const sum = (name) => lanes.reduce((total, lane) => total + (lane[name] || 0), 0);
  const most = (name) => lanes.reduce((found, lane) => Math.max(found, lane[name] || 0), 0);
  const capped = lanes.some((lane) => lane.due === null || lane.due_capped);
  const dead = sum("dead");
  const lags = lanes.map((lane) => lane.lag_p99_ms).filter((value) => value !== null);
  pairs(at("totals"), [
    ["due now", whole(sum("due")) + (capped ? "+" : "")],
    ["in flight", whole(sum("claimed") + sum("dispatched") + sum("running"))],
    ["sent/s", sum("sent_per_s").toFixed(1)],
    ["lag p99", lags.length ? lag(Math.max(...lags)) : "–"],
    ["oldest due", most("oldest_due_s") ? span(most("oldest_due_s")) : "–"],
    ["dead", whole(dead), dead ? "bad" : ""],
  ]);
}

function laneRow(lane) {
  const row = make("tr");
  row.append(make("td"), ...COLUMNS.map((name) => {
    const cell = make("td");
    cell.dataset.name = name;
    return cell;
  }));
  row.dataset.lane = lane.lane;
  return row;
}

function fill(row, lane) {
  const [name, ...cells] = row.children;
  name.replaceChildren(lane.lane);
  if (lane.stopped) name.append(make("span", lane.stopped, "note"));
  const values = [whole(lane.pending), due(lane), whole(lane.claimed), whole(lane.dispatched), whole(lane.running),
    whole(lane.held), whole(lane.dead), lane.sent_per_s.toFixed(1), lag(lane.lag_p99_ms),
    lane.oldest_due_s ? span(lane.oldest_due_s) : "–"];
  values.forEach((value, index) => {
    const cell = cells[index];
    if (cell.textContent !== value) cell.textContent = value;
    cell.className = ["0", "0.0", "–"].includes(value) ? "nothing" : "";
  });
  if (lane.dead) cells[6].className = "bad";
  if (lane.held) cells[5].className = "wait";
}

function showLanes(lanes, more) {
  const body = at("lanes").tBodies[0];
  const known = new Map([...body.rows].map((row) => [row.dataset.lane, row]));
  const rows = lanes.map((lane) => {
    const row = known.get(lane.lane) || laneRow(lane);
    fill(row, lane);
    return row;
  });
  if (rows.length !== body.rows.length || rows.some((row, index) => row !== body.rows[index])) {
    body.replaceChildren(...rows);
  }
  at("more").hidden = !more;
  at("more").textContent = `and ${more} more lanes: penstock lanes list`;
}

function when(stamp, now) {
  const seconds = (Date.parse(stamp) - Date.parse(now)) / 1000;
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

function jobLine(job, now) {
  const item = make("li");
  const line = make("div", undefined, "line");
  const link = make("a");
  link.href = `/api/jobs/${encodeURIComponent(job.id)}`;
  link.append(make("code", job.id));
  line.append(make("span", job.state, `state ${STATES[job.state] || ""}`), link);
  line.append(make("span", job.group ? `${job.lane} / ${job.group}` : job.lane));
  const explain = make("a", "why?");
  explain.href = `/api/jobs/${encodeURIComponent(job.id)}/explain`;
  if (job.state !== "succeeded") line.append(explain);
  const time = make("time", when(job.at, now), "when");
  time.dateTime = job.at;
  time.title = job.at;
  line.append(time);
  item.append(line);
  const why = [job.reason, job.error].filter(Boolean).join(": ");
  if (why) item.append(make("span", why, "why"));
  return item;
}

function blockedLine(group, now) {
  const item = make("li");
  const line = make("div", undefined, "line");
  line.append(make("span", "blocked", "state bad"), make("span", `${group.lane} / ${group.group}`));
  if (group.since) line.append(make("span", `for ${span((Date.parse(now) - Date.parse(group.since)) / 1000)}`, "when"));
  item.append(line);
  if (!group.blocker) return item;
  const why = make("span", `${group.behind >= 1000 ? "1,000+" : whole(group.behind)} wait for `, "why");
  const link = make("a", group.blocker);
  link.href = `/api/jobs/${encodeURIComponent(group.blocker)}`;
  why.append(link, `. To let them go: penstock jobs retry (or skip) ${group.blocker} --reason "..."`);
  item.append(why);
  return item;
}

function showBlocked(groups, now) {
  at("blocked-groups").hidden = groups.length === 0;
  at("blocked").replaceChildren(...groups.map((group) => blockedLine(group, now)));
}

function showJobs(id, jobs, now) {
  const none = make("li", "none", "none");
  at(id).replaceChildren(...(jobs.length ? jobs.map((job) => jobLine(job, now)) : [none]));
}

function showNotices(stats) {
  const notices = stats.reasons.map((reason) => [`not ready: ${reason.part}: ${reason.text}`, "bad"]);
  if (stats.error) notices.push([`the store does not answer: ${stats.error}`, "bad"]);
  if (stats.paused) notices.push([stats.paused, ""]);
  for (const trouble of stats.troubles) notices.push([`${trouble.kind} ${trouble.name}: ${trouble.text}`, ""]);
  const text = JSON.stringify(notices);
  if (at("notices").dataset.text === text) return; // a screen reader hears news, not repetitions
  at("notices").dataset.text = text;
  at("notices").replaceChildren(...notices.map(([words, style]) => make("li", words, style)));
}

function showEmpty(stats) {
  const empty = stats.jobs.length === 0 && stats.ended.length === 0;
  at("empty").hidden = !empty;
  if (!empty) return;
  const lane = (stats.lanes.find((one) => one.lane === "hello") || stats.lanes[0] || { lane: "hello" }).lane;
  for (const place of document.querySelectorAll("[data-lane]")) if (place.tagName === "SPAN") place.textContent = lane;
  if (stats.node.store) for (const place of document.querySelectorAll("[data-store]")) place.textContent = stats.node.store;
}

function show(stats) {
  showNode(stats);
  showNotices(stats);
  if (stats.error) return; // the numbers stay as they were, and look it
  showTotals(stats.lanes);
  showEmpty(stats);
  showLanes(stats.lanes, stats.more_lanes);
  showBlocked(stats.blocked, stats.now);
  showJobs("jobs", stats.jobs, stats.now);
  showJobs("ended", stats.ended, stats.now);
}

function mark(on, text, stale) {
  at("live").className = on ? "on" : "off";
  at("live").textContent = text;
  document.body.classList.toggle("stale", stale);
}

async function look() {
  try {
    const answer = await fetch("/api/stats", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const stats = await answer.json();
    seen = Date.now();
    show(stats);
    mark(!stats.error, stats.error ? "store unreachable" : "live", Boolean(stats.error));
  } catch {
    const lost = seen ? `no answer for ${Math.round((Date.now() - seen) / 1000)} s` : "no answer";
    mark(false, `${lost}: is the node running?`, true);
  }
}

async function keepLooking() {
  for (;;) {
    if (!document.hidden) await look();
    await new Promise((wake) => {
      const timer = setTimeout(wake, EVERY_MS);
      document.addEventListener("visibilitychange", () => { clearTimeout(timer); wake(); }, { once: true });
    });
  }
}

keepLooking();
