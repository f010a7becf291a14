'use strict';
(() => {
  const { picture, marks } = JSON.parse(document.getElementById('data').textContent);
  const by = (id) => document.getElementById(id);
  const make = (name, attributes = {}, text = '') => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text) node.textContent = text;
    return node;
  };
  const paths = Object.fromEntries(marks.map(([name, , path]) => [name, path]));
  const end = Math.max(1, picture.until_ms * 1.02);
  const view = { from: 0, to: end };
  const hidden = new Set();
  const LEFT = 104, RIGHT = 16, NARROWEST = 20;
  let chosen = null;

  // What stands above the picture.
  by('title').textContent = picture.title;
  const verdict = document.createElement('span');
  verdict.className = picture.passed ? 'verdict' : 'verdict failed';
  verdict.textContent = picture.passed ? 'everything held' : 'failed';
  by('title').append(verdict);
  by('about').textContent = picture.about;
  for (const [name, value] of picture.facts) {
    const fact = document.createElement('div');
    const [term, text] = [document.createElement('dt'), document.createElement('dd')];
    [term.textContent, text.textContent] = [name, value];
    fact.append(term, text);
    by('facts').append(fact);
  }
  const option = (value, text) => by('only').append(new Option(text, value));
  const more = picture.left_out ? `, ${picture.left_out} more not here` : '';
  option('', `all ${picture.panels.length}${more}`);
  picture.panels.forEach((panel, index) => option(index, `${panel.name} (${panel.policy})`));
  for (const [name, word] of marks) {
    if (!picture.panels.some((panel) => panel.points.some((point) => point.mark === name))) continue;
    const button = document.createElement('button');
    const icon = make('svg', { width: 14, height: 14, viewBox: '-7 -7 14 14', 'aria-hidden': true });
    icon.append(make('path', { class: name, d: paths[name] }));
    button.append(icon, word);
    button.setAttribute('aria-pressed', true);
    button.onclick = () => {
      hidden.has(name) ? hidden.delete(name) : hidden.add(name);
      button.setAttribute('aria-pressed', !hidden.has(name));
      draw();
    };
    by('legend').append(button);
  }

  const shown = () => {
    const only = by('only').value;
    return picture.panels.filter((_, index) => only === '' || index === Number(only));
  };
  const time = (ms) => (ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms % 1000 ? 2 : 0)} s`);
  const tickStep = (span, room) => {
    const most = Math.max(2, room / 90);
    for (let zeros = 1; ; zeros *= 10) for (const digit of [1, 2, 5]) if (span / (digit * zeros) <= most) return digit * zeros;
  };

  const drawPanel = (panel, alone) => {
    const box = document.createElement('section');
    box.className = 'panel';
    const head = document.createElement('h2');
    const small = document.createElement('small');
    small.textContent = `policy ${panel.policy}, ${panel.ends}`;
    head.append(panel.name, small);
    const width = Math.max(320, by('chart').clientWidth);
    const height = Math.min(alone ? 620 : 230, Math.max(alone ? 320 : 96, panel.height * 17 + 20)) + 20;
    const bottom = height - 20;
    const x = (ms) => LEFT + ((ms - view.from) / (view.to - view.from)) * (width - LEFT - RIGHT);
    const y = (version) => bottom - 8 - ((version - 0.5) / Math.max(1, panel.height)) * (bottom - 16);
    const svg = make('svg', { viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': true });
    const clip = `clip${picture.panels.indexOf(panel)}`;
    svg.append(make('clipPath', { id: clip }));
    svg.firstChild.append(make('rect', { x: LEFT - 6, y: 0, width: width - LEFT - RIGHT + 12, height }));
    const inside = make('g', { 'clip-path': `url(#${clip})` });
    let named = -Infinity;
    for (const band of picture.bands) {
      const [from, to] = [x(band.from_ms), x(band.until_ms)];
      if (to < LEFT || from > width - RIGHT) continue;
      const rect = make('rect', { class: 'band', x: from, y: 0, width: Math.max(1.5, to - from), height: bottom });
      rect.dataset.tip = `${band.what}${band.node === null ? '' : ` of node ${band.node}`}, ${time(band.from_ms)} to ${time(band.until_ms)}`;
      inside.append(rect);
      const start = Math.max(from, LEFT) + 3;
      if (to - start > band.what.length * 5.6 && start > named) {
        named = start + band.what.length * 5.6 + 6;
        inside.append(make('text', { class: 'small', x: start, y: 10 }, band.what));
      }
    }
    const step = tickStep(view.to - view.from, width - LEFT - RIGHT);
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      inside.append(make('path', { class: 'grid', d: `M${x(tick)},0V${bottom}` }));
      const label = step % 1000 ? `${Math.round(tick)} ms` : `${tick / 1000} s`;
      svg.append(make('text', { class: 'soft', 'text-anchor': 'middle', x: x(tick), y: bottom + 15 }, label));
    }
    inside.append(make('path', { class: 'grid', d: `M${LEFT},${bottom}H${width - RIGHT}` }));
    let free = Infinity;
    for (const [version, label] of panel.versions) {
      const place = y(version);
      if (place > free - 13) continue;
      free = place;
      const text = make('text', { class: 'small', 'text-anchor': 'end', x: LEFT - 10, y: place + 3.5 }, label.length > 15 ? `${label.slice(0, 14)}…` : label);
      text.dataset.tip = label;
      svg.append(text);
    }
    if (!hidden.has('held')) for (const hold of panel.holds) inside.append(make('path', { class: 'hold', d: `M${x(hold.from_ms)},${y(hold.height)}H${x(hold.until_ms)}` }));
    if (!hidden.has('applied')) for (const lag of panel.lags) if (x(lag.until_ms) - x(lag.from_ms) > 3) inside.append(make('path', { class: 'lag', d: `M${x(lag.from_ms)},${y(lag.height)}H${x(lag.until_ms)}` }));
    if (panel.state.length && !hidden.has('applied')) {
      const [[first, from], ...rest] = panel.state;
      const line = rest.map(([ms, version]) => `H${x(ms)}V${y(version)}`).join('');
      inside.append(make('path', { class: 'state', d: `M${x(first)},${y(from)}${line}H${width - RIGHT + 6}` }));
    }
    for (const top of [false, true]) for (const point of panel.points) {
      if ((point.mark === 'applied') !== top || hidden.has(point.mark)) continue;
      const at = x(point.at_ms);
      if (at < LEFT - 12 || at > width - RIGHT + 12) continue;
      const mark = make('path', { class: `mark ${point.mark}${point === chosen ? ' chosen' : ''}`, d: paths[point.mark], transform: `translate(${at},${y(point.height)})` });
      mark.dataset.tip = told(panel, point);
      mark.onclick = () => choose(panel, point);
      inside.append(mark);
    }
    svg.append(inside);
    box.append(head, svg);
    return box;
  };
  const told = (panel, point) => `${time(point.at_ms)}: ${point.text}`;
  const choose = (panel, point) => {
    chosen = point;
    by('told').textContent = `${panel.name}, ${told(panel, point)}`;
    draw();
  };

  let asked = false;
  const draw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      const panels = shown();
      by('chart').replaceChildren(...panels.map((panel) => drawPanel(panel, panels.length === 1)));
      by('range').textContent = `${time(view.from)} to ${time(view.to)}`;
    });
  };
  const look = (from, to) => {
    const span = Math.min(end, Math.max(NARROWEST, to - from));
    view.from = Math.min(Math.max(0, from), end - span);
    view.to = view.from + span;
    draw();
  };
  const zoom = (factor, at = (view.from + view.to) / 2) => look(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (share) => look(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);
  const step = (by_one) => {
    const all = shown().flatMap((panel) => panel.points.filter((point) => !hidden.has(point.mark)).map((point) => [panel, point]));
    all.sort((one, other) => one[1].at_ms - other[1].at_ms);
    if (!all.length) return;
    const at = all.findIndex(([, point]) => point === chosen);
    const [panel, point] = all[at < 0 ? (by_one > 0 ? 0 : all.length - 1) : (at + by_one + all.length) % all.length];
    if (point.at_ms < view.from || point.at_ms > view.to) look(point.at_ms - (view.to - view.from) / 2, point.at_ms + (view.to - view.from) / 2);
    choose(panel, point);
  };

  by('in').onclick = () => zoom(0.5);
  by('out').onclick = () => zoom(2);
  by('back').onclick = () => move(-0.5);
  by('forth').onclick = () => move(0.5);
  by('all').onclick = () => look(0, end);
  by('only').onchange = draw;
  const keys = { ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => look(0, end), n: () => step(1), p: () => step(-1), Home: () => look(0, view.to - view.from), End: () => look(end - (view.to - view.from), end) };
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('select')) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  const chart = by('chart');
  const msAt = (event) => {
    const box = chart.getBoundingClientRect();
    return view.from + ((event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT)) * (view.to - view.from);
  };
  chart.addEventListener('wheel', (event) => {
    const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!across && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    across ? move(event.deltaX / 1000) : zoom(Math.exp(event.deltaY / 300), msAt(event));
  }, { passive: false });
  let grip = null;
  chart.addEventListener('pointerdown', (event) => {
    if (event.button === 0) grip = { id: event.pointerId, x: event.clientX, from: view.from, to: view.to };
  });
  addEventListener('pointermove', (event) => {
    if (grip && event.pointerId === grip.id && Math.abs(event.clientX - grip.x) > 3) {
      chart.classList.add('moving');
      const ms = ((event.clientX - grip.x) / Math.max(1, chart.clientWidth - LEFT - RIGHT)) * (grip.to - grip.from);
      look(grip.from - ms, grip.to - ms);
    }
    const tip = event.target.dataset && event.target.dataset.tip;
    by('tip').hidden = !tip || chart.classList.contains('moving');
    if (tip) {
      by('tip').textContent = tip;
      const { offsetWidth: width, offsetHeight: height } = by('tip');
      by('tip').style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
      by('tip').style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
    }
  });
  const release = () => { grip = null; chart.classList.remove('moving'); };
  addEventListener('pointerup', release);
  addEventListener('pointercancel', release);
  chart.addEventListener('dblclick', (event) => zoom(0.4, msAt(event)));
  addEventListener('resize', draw);
  draw();
})();
