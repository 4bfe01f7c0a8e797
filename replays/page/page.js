"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { items, views, changes, names } = data;
  const at = (id) => document.getElementById(id);
  const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
  const PAUSE_MS = 1100, PER_CHARACTER_MS = 18, LONGEST_MS = 6000;

  let cursor = 0;
  let view = String(views[0]);
  let speed = 1;
  let timer = null;
  let rows = [];

  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const hue = (node, seat) => node.style.setProperty("--hue", String((seat * 137.5 + 205) % 360));
  const label = (one) =>
    one === "all" ? "Omniscient" : one === "public" ? "Public" : `${one} · ${names[one]}`;

  const sees = (item) =>
    view === "all" || item.to === null || (view !== "public" && item.to.includes(Number(view)));
  const shown = () => items.map((_, i) => i).filter((i) => sees(items[i]));
  const facts = (who, upTo) => {
    const known = {};
    for (const [i, changed] of changes[who]) {
      if (i > upTo) break;
      Object.assign(known, changed);
    }
    return known;
  };

  // The feed is built once for each perspective; moving through time only shows and hides its rows.
  const buildFeed = () => {
    const list = at("items");
    list.replaceChildren();
    rows = [];
    let stage = "";
    for (const i of shown()) {
      const item = items[i];
      const here = facts(view, i).stage || "";
      if (here !== stage) {
        stage = here;
        if (stage) list.append(Object.assign(make("li", "stage", stage), { at: i }));
      }
      const row = make("li", "item" + (item.kind === "thought" ? " thought" : ""));
      row.at = i;
      row.dataset.item = i;
      row.append(make("span", "n", item.n === undefined ? "" : String(item.n)));
      if (item.seat !== undefined && names[item.seat] !== undefined) {
        const chip = make("span", "chip", String(item.seat));
        chip.title = names[item.seat];
        hue(chip, item.seat);
        row.append(chip);
      } else row.append(make("span"));
      const body = make("span", item.key ? "key" : item.to !== null && !item.to.length ? "quiet" : "", item.text);
      if (item.to !== null && item.kind !== "thought") {
        const whom = item.to.length === 0 ? "record only" : view !== "all" ? "private" : `to ${item.to.join(", ")}`;
        body.append(make("span", "to", whom));
      }
      if (item.words !== null) body.append(make("span", "words", item.words));
      row.append(body);
      row.addEventListener("click", () => { pause(); go(i); });
      list.append(row);
    }
    if (data.note) list.append(Object.assign(make("li", "stage", data.note), { at: items.length - 1 }));
    rows = [...list.children];
  };

  const seatCards = names.map((name, seat) => {
    const card = make("li", "seat");
    card.dataset.seat = seat;
    const who = make("div", "who");
    const chip = make("span", "chip", String(seat));
    hue(card, seat);
    const angle = (seat / names.length) * 2 * Math.PI - Math.PI / 2;
    card.style.setProperty("--x", `${50 + 41 * Math.cos(angle)}%`);
    card.style.setProperty("--y", `${50 + 41 * Math.sin(angle)}%`);
    const shownName = make("span", "name", name);
    shownName.title = data.specs[seat] && data.specs[seat] !== name ? `${name} (${data.specs[seat]})` : name;
    who.append(chip, shownName);
    const role = make("div", "role");
    const marks = make("div", "marks");
    card.append(who, role, marks);
    at("seats").append(card);
    return { card, role, marks };
  });

  const drawTable = (current) => {
    const known = facts(view, cursor);
    const roles = known.roles || {}, held = known.cards || {}, out = known.out || [], team = known.team || [];
    seatCards.forEach(({ card, role, marks }, seat) => {
      const facing = [roles[seat], held[seat]].filter(Boolean).join(" · ");
      role.textContent = facing || "?";
      role.classList.toggle("known", Boolean(facing));
      const tags = [];
      if (known.leader === seat && !known.returns) tags.push(["leader", "leader"]);
      if (team.includes(seat) && !known.returns) tags.push(["on", "team"]);
      if (out.includes(seat)) tags.push(["out", "out"]);
      if (known.returns) {
        const value = known.returns[seat];
        tags.push(value > 0 ? ["won", "won"] : value < 0 ? ["lost", "lost"] : ["drawn", "drawn"]);
      }
      marks.replaceChildren(...tags.map(([name, text]) => make("span", `mark ${name}`, text)));
      card.classList.toggle("out", out.includes(seat));
      card.classList.toggle("team", team.includes(seat));
      card.classList.toggle("own", view === String(seat));
      card.classList.toggle("active", Boolean(current) && current.seat === seat);
    });
    at("stage").textContent = known.stage || "";
    at("score").textContent = known.score ? `Score ${known.score.join(" : ")}` : "";
    const words = current && current.words !== null ? `${current.text}: “${current.words}”` : current ? current.text : "";
    at("now").textContent = words;
    at("now").classList.toggle("wide", words.length > 140);
  };

  const draw = () => {
    let last = null;
    for (const row of rows) {
      row.hidden = row.at > cursor;
      row.classList.remove("now");
      row.removeAttribute("aria-current");
      if (!row.hidden && row.dataset.item !== undefined) last = row;
    }
    drawTable(last ? items[last.at] : null);
    if (last) {
      last.classList.add("now");
      last.setAttribute("aria-current", "true");
      const feed = at("feed");
      const top = last.offsetTop, bottom = top + last.offsetHeight;
      if (bottom > feed.scrollTop + feed.clientHeight - 24) feed.scrollTop = bottom - feed.clientHeight + 24;
      if (top < feed.scrollTop) feed.scrollTop = top - 24;
    }
    const range = at("range");
    range.value = String(cursor);
    range.setAttribute("aria-valuetext", at("now").textContent);
    at("place").textContent = items.length ? `${cursor + 1} / ${items.length}` : "nothing to see";
    document.body.dataset.cursor = cursor;
    document.body.dataset.view = view;
    document.body.dataset.playing = timer !== null;
    try {
      const named = items.slice(0, cursor + 1).findLast((item) => item.n !== undefined);
      history.replaceState(null, "", `#event=${named ? named.n : 0}&view=${view}`);
    } catch {
      // a page that may not name its place works all the same
    }
  };

  const go = (to) => {
    cursor = Math.max(0, Math.min(items.length - 1, to));
    draw();
  };
  const step = (by, wanted = sees) => {
    for (let i = cursor + by; i >= 0 && i < items.length; i += by)
      if (wanted(items[i])) { go(i); return true; }
    return false;
  };
  const key = (item) => Boolean(item.key);
  const pause = () => {
    clearTimeout(timer);
    timer = null;
    at("play").textContent = "Play";
    at("play").setAttribute("aria-label", "Play");
    document.body.dataset.playing = false;
  };
  const tick = () => {
    const length = at("now").textContent.length;
    const wait = Math.min(PAUSE_MS + PER_CHARACTER_MS * length, LONGEST_MS) / speed;
    timer = setTimeout(() => (step(1) && items.some((item, i) => i > cursor && sees(item)) ? tick() : pause()), wait);
  };
  const play = () => {
    if (timer !== null) { pause(); return; }
    if (!items.some((item, i) => i > cursor && sees(item))) go(0);
    at("play").textContent = "Pause";
    at("play").setAttribute("aria-label", "Pause");
    tick();
    document.body.dataset.playing = true;
  };
  const setSpeed = (value) => {
    speed = value;
    at("speed").value = String(value);
    if (timer !== null) { clearTimeout(timer); tick(); }
  };
  const faster = (by) => setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(speed) + by))]);
  const see = (who) => {
    if (!views.map(String).includes(String(who))) return;
    view = String(who);
    for (const button of at("views").children) {
      const on = button.dataset.view === view;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    buildFeed();
    draw();
  };
  const nextView = (by) => {
    const all = views.map(String);
    see(all[(all.indexOf(view) + by + all.length) % all.length]);
  };

  at("title").textContent = data.title;
  const about = [data.match, `rules ${data.rules}`, data.seed === null ? "" : `seed ${data.seed}`];
  at("about").textContent = about.filter(Boolean).join(" · ");
  for (const one of views) {
    const button = make("button", "", label(one));
    button.type = "button";
    button.dataset.view = one;
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => see(one));
    at("views").append(button);
  }
  for (const value of SPEEDS) {
    const option = make("option", "", `${value}×`);
    option.value = String(value);
    at("speed").append(option);
  }
  at("speed").value = "1";
  at("range").max = String(Math.max(0, items.length - 1));
  items.forEach((item, i) => {
    if (!item.key) return;
    const mark = make("i", item.key);
    mark.style.setProperty("--at", `${(100 * i) / Math.max(1, items.length - 1)}%`);
    at("ticks").append(mark);
  });

  at("first").addEventListener("click", () => { pause(); go(0); });
  at("last").addEventListener("click", () => { pause(); go(items.length - 1); });
  at("back").addEventListener("click", () => { pause(); step(-1); });
  at("next").addEventListener("click", () => { pause(); step(1); });
  at("play").addEventListener("click", play);
  at("help").addEventListener("click", () => at("keys").showModal());
  at("speed").addEventListener("change", (event) => setSpeed(Number(event.target.value)));
  at("range").addEventListener("input", (event) => { pause(); go(Number(event.target.value)); });

  document.addEventListener("keydown", (event) => {
    if (at("keys").open || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof HTMLElement ? event.target : document.body;
    const inViews = on.parentElement === at("views");
    if (on.tagName === "SELECT" || (on.tagName === "BUTTON" && [" ", "Enter"].includes(event.key))) return;
    const does = {
      " ": play,
      ArrowRight: () => (inViews ? nextView(1) : (pause(), step(1, event.shiftKey ? key : sees))),
      ArrowLeft: () => (inViews ? nextView(-1) : (pause(), step(-1, event.shiftKey ? key : sees))),
      Home: () => { pause(); go(0); },
      End: () => { pause(); go(items.length - 1); },
      "+": () => faster(1),
      "-": () => faster(-1),
      a: () => see("all"),
      p: () => see("public"),
      v: () => nextView(1),
      "?": () => at("keys").showModal(),
    }[event.key];
    if (does) does();
    else if (/^[0-9]$/.test(event.key)) see(event.key);
    else return;
    event.preventDefault();
    if (inViews) at("views").querySelector('[aria-checked="true"]').focus();
  });

  const fromHash = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("event")) {
      const number = Number(wanted.get("event")) || 0;
      const found = items.findIndex((item) => item.n !== undefined && item.n >= number);
      cursor = number <= 0 ? 0 : found < 0 ? Math.max(0, items.length - 1) : found;
    }
    see(views.map(String).includes(wanted.get("view")) ? wanted.get("view") : view);
  };
  window.addEventListener("hashchange", fromHash);
  window.addEventListener("resize", draw);
  fromHash();
})();
