// Keeps the page up to date. All HTML comes from the server, which escapes every value.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// fragment returns the first element of a part of a page.
function fragment(html, wrapper) {
  const template = document.createElement("template");
  template.innerHTML = wrapper ? `<${wrapper}>${html}</${wrapper}>` : html;
  const root = template.content.firstElementChild;
  return wrapper ? $("tr", root) : root;
}

// ask returns the element with an identity from a page of the server.
async function ask(url, identity, options) {
  const answer = await fetch(url, options);
  if (!answer.headers.get("Content-Type")?.startsWith("text/html")) throw new Error(await answer.text());
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const isForNow = answer.status === 429 || answer.status >= 500;
  if (isForNow) throw new Error($("[role=alert]", page)?.textContent ?? answer.statusText);
  return document.adoptNode(page.getElementById(identity) ?? page.body);
}

function tell(problem) {
  $("#problem").textContent = problem ? `Not up to date: ${problem}` : "";
}

let told = ""; // by the events

// Events. A page that is not visible needs none, and a browser opens six connections at most.

let source, events = document.body.dataset.events;

function connect() {
  if (!events || source) return;
  source = new EventSource(events);
  source.addEventListener("row", (event) => changeRow(event.data));
  source.addEventListener("gone", (event) => document.getElementById(event.data)?.remove());
  source.addEventListener("repair", (event) => addRepair(event.data));
  source.addEventListener("problem", (event) => {
    events = events.replace(/since=\d+/, `since=${event.lastEventId}`);
    told = event.data;
    tell(told);
    arrangeSoon();
  });
  source.addEventListener("changed", (event) => {
    events = events.replace(/since=\d+/, `since=${event.lastEventId}`);
    refresh();
  });
  source.onerror = () => tell("kubectl krake ui has ended, or its connection is lost.");
  source.onopen = () => tell((told = ""));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = undefined;
  } else {
    connect();
    if (events && !$("#applications")) refresh();
  }
});

// refresh replaces the content. It keeps what the user has chosen, and where the focus is. If the server
// cannot answer for now, the content stays, and is read again later.
let refreshing = false, again = false, later, rest = 2000;

async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    const main = await ask(location.href, "main");
    const wanted = new Map(changedBoxes().map((box) => [placeOf(box), box.checked]));
    const focused = document.activeElement;
    for (const identity of ["why", "schema"]) {
      const kept = document.getElementById(identity);
      if (kept) $(`#${identity}`, main)?.replaceWith(kept);
    }
    $("#main").replaceWith(main);
    if (wanted.size) for (const box of $$("input.toggle")) box.checked = wanted.get(placeOf(box)) ?? box.checked;
    prepareLens(focused?.dataset.place || undefined);
    if (focused?.id) document.getElementById(focused.id)?.focus();
    else if (focused?.href) $$("a").find((link) => link.href === focused.href)?.focus();
    if ($("#schema-text")) await draft(); // what was drafted may be written, or be another
    tell(told);
    rest = 2000;
  } catch (failure) {
    tell(failure.message);
    clearTimeout(later);
    later = setTimeout(() => document.hidden || refresh(), rest);
    rest = Math.min(2 * rest, 60000);
  }
  refreshing = false;
  if (again) {
    again = false;
    refresh();
  }
}

// The overview.

function changeRow(html) {
  const row = fragment(html, "table");
  const former = document.getElementById(row.id);
  const hadFocus = former?.contains(document.activeElement);
  if (former) former.replaceWith(row);
  else $("#applications tbody").append(row);
  if (hadFocus) $("a", row).focus();
}

function addRepair(html) {
  const list = $("#repairs");
  list.prepend(fragment(html));
  while (list.children.length > 50) list.lastElementChild.remove();
}

let order = { column: 0, down: false }, arranging = false;

function arrangeSoon() {
  if (arranging || !$("#applications")) return;
  arranging = true;
  requestAnimationFrame(() => {
    arranging = false;
    arrange();
  });
}

const collator = new Intl.Collator(undefined, { numeric: true });
const keyOf = (row) => row.children[order.column].dataset.sort ?? row.children[order.column].textContent;

function arrange() {
  const body = $("#applications tbody"), filter = $("#filter");
  const wanted = filter.elements.text.value.toLowerCase(), onlyTrouble = filter.elements.trouble.checked;
  const rows = $$("tr", body).map((row) => ({ row, key: keyOf(row) }));
  const sorted = [...rows].sort((a, b) => collator.compare(a.key, b.key) || (a.row.id < b.row.id ? -1 : 1));
  if (order.down) sorted.reverse();
  if (sorted.some((entry, i) => entry !== rows[i])) body.append(...sorted.map((entry) => entry.row));
  let shown = 0;
  for (const { row } of rows) {
    row.hidden = (onlyTrouble && row.dataset.trouble !== "yes") || !row.textContent.toLowerCase().includes(wanted);
    if (!row.hidden) shown++;
  }
  $("#count").textContent = `${shown} of ${rows.length}`;
  $$("#applications thead th").forEach((th, i) => {
    if (i === order.column) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    else th.removeAttribute("aria-sort");
  });
}

document.addEventListener("input", (event) => {
  if (event.target.closest("#filter")) arrangeSoon();
});

document.addEventListener("submit", (event) => {
  if (event.target.id === "filter") event.preventDefault();
});

// The lens.

const placeOf = (box) => $("button.yaml", box.closest(".line")).dataset.place;
const changedBoxes = () => $$("input.toggle").filter((box) => box.checked !== box.defaultChecked);
const toggleOf = (box) => `${box.dataset.length ?? 0}:${placeOf(box)}`;
const toggles = () => changedBoxes().map(toggleOf);
const queryOfLens = () => new URLSearchParams($(".lens").dataset.query);

function prepareLens(place) {
  const buttons = $$(".lens button.yaml");
  const current = (place !== undefined && buttons.find((button) => button.dataset.place === place)) || buttons[0];
  if (!current) return;
  current.tabIndex = 0;
  if (place !== undefined) current.focus();
}

let explained = 0;

// fill changes what is in a section. A screen reader tells of that, and not of a new section.
const fill = (identity, section) => document.getElementById(identity).replaceChildren(...section.childNodes);

async function explain(button) {
  const number = ++explained, query = queryOfLens();
  query.set("place", button.dataset.place);
  const section = await ask(`/object/explain?${query}`, "why");
  if (number !== explained) return; // an older answer may come later
  fill("why", section);
  $(".line[aria-current]")?.removeAttribute("aria-current");
  button.closest(".line").setAttribute("aria-current", "true");
}

let drafts = 0;

async function draft() {
  const number = ++drafts, form = queryOfLens();
  for (const value of toggles()) form.append("toggle", value);
  const section = await ask("/object/schema", "schema", { method: "POST", body: form });
  if (number === drafts) fill("schema", section);
}

function move(button, distance) {
  const buttons = $$(".lens button.yaml");
  const next = buttons[Math.min(Math.max(buttons.indexOf(button) + distance, 0), buttons.length - 1)];
  button.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

document.addEventListener("keydown", (event) => {
  const button = event.target.closest?.(".lens button.yaml");
  if (!button) return;
  const distance = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
  if (distance) move(button, distance);
  else if (event.key === " ") button.closest(".line").querySelector("input.toggle")?.click();
  else return;
  event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("input.toggle")) draft().catch((failure) => tell(failure.message));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches(".lens button.yaml")) explain(button).catch((failure) => tell(failure.message));
  if (button.matches(".sort")) {
    const column = [...button.closest("tr").children].indexOf(button.parentElement);
    order = { column, down: order.column === column && !order.down };
    arrange();
  }
  if (button.matches(".copy")) {
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(
      () => (button.textContent = "Copied"),
      () => getSelection().selectAllChildren(document.getElementById(button.dataset.copy)),
    );
  }
});

// Before you apply: a dropped file takes the place of the text.

document.addEventListener("dragover", (event) => {
  if ($("#manifest")) event.preventDefault();
});

document.addEventListener("drop", async (event) => {
  const file = event.dataTransfer?.files[0], area = $("#manifest");
  if (!file || !area) return;
  event.preventDefault();
  area.value = await file.text();
  const name = $("#name");
  name.value ||= file.name.replace(/\.[^.]*$/, "");
  area.form.requestSubmit();
});

// Times. Their distance from now grows without a request.

function ago(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000)), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (seconds < 120) return `${seconds}s ago`;
  if (minutes < 120) return `${minutes}m ago`;
  return hours < 48 ? `${hours}h ago` : `${Math.floor(hours / 24)}d ago`;
}

setInterval(() => {
  for (const time of $$("time")) time.textContent = ago(Date.now() - Date.parse(time.dateTime));
}, 5000);

prepareLens();
if ($("#applications")) arrange();
if (!document.hidden) connect();
