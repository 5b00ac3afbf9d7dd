'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const text = data.text, nodes = data.nodes, sheets = data.sheets;
const $ = id => document.getElementById(id);
const NS = 'http://www.w3.org/2000/svg';
const count = nodes.length;
// A node is [name, op, opset, kind, part, outputs, attrs, weights, bodies, source, notes, device, kernel, time, ran as, fused into]; texts are numbers.
const name = i => nodes[i][0], op = i => text[nodes[i][1]], kind = i => nodes[i][3], device = i => text[nodes[i][11]],
  kernel = i => text[nodes[i][12]], time = i => nodes[i][13], work = i => text[nodes[i][14]] || op(i), fact = i => nodes[i][5].length ? text[nodes[i][5][0]] : '';
const reads = nodes.map(() => []), feeds = nodes.map(() => []);
for (let e = 0; e < data.edges.length; e += 4) {
  const [a, ap, b, bp] = data.edges.slice(e, e + 4);
  reads[b].push([a, ap, bp]); feeds[a].push([b, ap, bp]);
}
const violations = [];
document.addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective));

// All text of a model goes in by textContent or setAttribute: its names may be anything.
function make(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const k in attrs) k.startsWith('on') ? e.addEventListener(k.slice(2), attrs[k]) : e.setAttribute(k, attrs[k]);
  for (const c of children) e.append(c);
  return e;
}
function draw(tag, attrs, content) {
  const e = document.createElementNS(NS, tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (content !== undefined) e.textContent = content;
  return e;
}
const short = (s, most) => s.length > most ? s.slice(0, most - 1) + '\u2026' : s;
const shownTime = us => us >= 1000 ? (us / 1000).toFixed(2) + ' ms' : us.toFixed(1) + ' us';

// Colours: by the family of a type, by device, or by time.
const families = [
  ['products', /conv|matmul|gemm|dot|lstm|gru|rnn|attention|einsum|fullyconnected|deformable/i, '#9cc3ff'],
  ['activations', /relu|sigmoid|tanh|elu|swish|mish|clamp|softmax|softplus|gelu|activation|hard|erf/i, '#ffb3a1'],
  ['pooling', /pool|reduce|region|roi|interpolate|resize/i, '#a9dfb4'],
  ['normalization', /norm|mvn|lrn|batch/i, '#f7d98b'],
  ['shapes', /reshape|squeeze|transpose|concat|split|slice|gather|scatter|pad|shape|tile|broadcast|unsqueeze|flatten|range|space|depth|reverse|roll/i, '#d3d9e3'],
  ['types', /convert|quantize|cast/i, '#e6c7f2'],
  ['control', /loop|^if$|iterator|assign|readvalue|variable/i, '#c9b8ff'],
  ['other', /./, '#b9e3e8'],
];
const family = s => families.findIndex(f => f[1].test(s));
const palette = ['#9cc3ff', '#ffb3a1', '#a9dfb4', '#f7d98b', '#c9b8ff', '#b9e3e8', '#e6c7f2'];
const devices = [...new Set(nodes.map((n, i) => device(i)))].filter(d => d);
const total = nodes.reduce((s, n) => s + (n[13] || 0), 0), longest = nodes.reduce((s, n) => Math.max(s, n[13] || 0), 0);
const timed = longest > 0;
let colouring = timed ? 'time' : 'type';
function heat(share) {
  const t = Math.sqrt(Math.min(1, share));
  const stops = [[247, 248, 250], [255, 226, 138], [250, 150, 70], [200, 30, 40]];
  const at = Math.min(2, Math.floor(t * 3)), f = t * 3 - at;
  return { fill: `rgb(${[0, 1, 2].map(c => Math.round(stops[at][c] + f * (stops[at + 1][c] - stops[at][c]))).join()})`, dark: t > 0.75 };
}
const timeOf = list => list.reduce((s, i) => s + (time(i) || 0), 0);
function paint(item) {
  const [what, ref] = item;
  if (what === 1) {
    if (colouring === 'time') return heat(timeOf(sheets[ref].nodes) / (total || 1));
    const own = sheets[ref].nodes.map(i => colouring === 'device' ? devices.indexOf(device(i)) : family(op(i))).filter(n => n >= 0);
    const most = own.sort((a, b) => own.filter(x => x === b).length - own.filter(x => x === a).length)[0];
    return { fill: colouring === 'device' ? palette[most % palette.length] || '#eef1f6' : '#eef1f6' };
  }
  if (kind(ref) === 1 || kind(ref) === 2) return { fill: '#e4e9f1' };
  if (colouring === 'time') return heat((time(nodes[ref][15] === null ? ref : nodes[ref][15]) || 0) / (longest || 1));
  if (colouring === 'device') return { fill: device(ref) ? palette[devices.indexOf(device(ref)) % palette.length] : '#f5f7fa' };
  return { fill: families[family(op(ref))][2] };
}

// The picture. Large sheets draw only what is in view.
const svg = $('view'), scene = draw('g', {}), edgeLayer = draw('g', {}), nodeLayer = draw('g', {}), farLayer = draw('g', {}), lit = draw('g', {});
scene.append(edgeLayer, lit, farLayer, nodeLayer);
svg.replaceChildren(scene);
let sheet = -1, items = [], drawn = new Map(), selected = -1, hits = new Set(), camera = { x: 0, y: 0, k: 1 }, asked = false;
const LARGE = 1500;
const itemOf = i => items.findIndex(([what, ref]) => what !== 1 ? ref === i : sheets[ref].nodes.includes(i));

function curve(r) {
  let d = `M${r[0]} ${r[1]}`;
  for (let p = 2; p < r.length; p += 2) {
    const m = (r[p - 1] + r[p + 1]) / 2;
    d += `C${r[p - 2]} ${m} ${r[p]} ${m} ${r[p]} ${r[p + 1]}`;
  }
  return d;
}
function caption(item) {
  const [what, ref] = item;
  if (what === 1) return [sheets[ref].title.split('/').pop(), sheets[ref].nodes.length + ' nodes'];
  if (what > 1) return [(what === 2 ? '\u2191 ' : '\u2193 ') + short(name(ref), 28), ''];
  return [kind(ref) === 1 || kind(ref) === 2 ? name(ref) : op(ref), kind(ref) === 2 ? '' : fact(ref)];
}
function element(n) {
  const s = sheets[sheet], item = items[n], [what, ref] = item, [w, h] = [s.w[n], s.h[n]];
  const colour = what > 1 ? {} : paint(item), [first, second] = caption(item);
  const fused = what === 0 && timed && kind(ref) === 0 && time(ref) === null;
  const full = what === 1 ? s.title + ': ' + sheets[ref].title : name(ref);
  const g = draw('g', { role: 'button', tabindex: 0, transform: `translate(${s.x[n] - w / 2} ${s.y[n]})`, 'data-name': full,
    'data-op': what === 1 ? 'group' : op(ref), 'aria-label': `${first} ${full}` });
  g.setAttribute('class', 'node' + (what > 1 ? ' stub' : what === 1 ? ' group' : '') + (colour.dark && !fused ? ' dark' : '') +
    (what === 0 && kind(ref) === 4 ? ' unknown' : '') + (fused ? ' fused' : '') +
    (what !== 1 && hits.has(ref) || what === 1 && sheets[ref].nodes.some(i => hits.has(i)) ? ' hit' : '') + (what !== 1 && ref === selected ? ' sel' : ''));
  g.append(draw('title', {}, `${full}\n${second}` + (what === 0 && time(ref) ? '\n' + shownTime(time(ref)) : '')));
  const rect = draw('rect', { width: w, height: h, rx: what === 0 && kind(ref) > 0 && kind(ref) < 3 ? 14 : 7 });
  if (colour.fill) rect.setAttribute('fill', colour.fill);
  g.append(rect, draw('text', { x: w / 2, y: second ? 18 : h / 2 + 4 }, short(first, Math.floor((w - 10) / 6.6))));
  if (second) g.append(draw('text', { class: 's', x: w / 2, y: 33 }, short(second, Math.floor((w - 8) / 5.4))));
  g.addEventListener('click', () => pick(item));
  g.addEventListener('dblclick', () => enter(item));
  g.addEventListener('keydown', e => { if (e.key === 'Enter') { pick(item); enter(item); } });
  return g;
}
function refresh() {
  asked = false;
  scene.setAttribute('transform', `translate(${camera.x} ${camera.y}) scale(${camera.k})`);
  const s = sheets[sheet], large = items.length > LARGE, far = large && camera.k < 0.22;
  farLayer.style.display = far ? '' : 'none';
  nodeLayer.style.display = far ? 'none' : '';
  if (far) {
    if (!farLayer.childNodes.length) {
      const by = {};
      items.forEach((item, n) => { const f = paint(item).fill; (by[f] = by[f] || []).push(`M${s.x[n] - s.w[n] / 2} ${s.y[n]}h${s.w[n]}v${s.h[n]}h${-s.w[n]}z`); });
      for (const f in by) farLayer.append(draw('path', { d: by[f].join(''), fill: f, stroke: '#0003' }));
    }
    return;
  }
  const box = svg.getBoundingClientRect(), m = 200;
  const [l, t, r, b] = [(-camera.x - m) / camera.k, (-camera.y - m) / camera.k, (box.width - camera.x + m) / camera.k, (box.height - camera.y + m) / camera.k];
  for (let n = 0; n < items.length; n++) {
    const inside = !large || s.x[n] + s.w[n] / 2 > l && s.x[n] - s.w[n] / 2 < r && s.y[n] + s.h[n] > t && s.y[n] < b;
    if (inside && !drawn.has(n)) { const g = element(n); drawn.set(n, g); nodeLayer.append(g); }
    else if (!inside && drawn.has(n)) { drawn.get(n).remove(); drawn.delete(n); }
  }
}
function moved() { if (!asked) { asked = true; requestAnimationFrame(refresh); } }
function repaint() {
  drawn.clear(); nodeLayer.replaceChildren(); farLayer.replaceChildren(); light(); refresh();
}
function open(index, keep) {
  sheet = index; const s = sheets[index];
  items = []; for (let n = 0; n < s.items.length; n += 2) items.push([s.items[n], s.items[n + 1]]);
  edgeLayer.replaceChildren(draw('path', { class: 'edge', d: s.routes.map(r => r.length ? curve(r) : '').join('') }));
  const chain = []; for (let c = index; c !== null; c = sheets[c].parent) chain.unshift(c);
  $('crumbs').replaceChildren(...chain.flatMap((c, n) => [n ? ' \u203a ' : '', make('button', { onclick: () => open(c) }, n ? sheets[c].title.replace(sheets[chain[n - 1]].title + '/', '') : c === 0 ? 'all nodes' : sheets[c].title)]));
  repaint();
  if (!keep) fit();
}
function fit() {
  const s = sheets[sheet], box = svg.getBoundingClientRect(), [w, h] = s.size;
  const k = Math.min(1.2, (box.width - 60) / Math.max(w, 1), (box.height - 60) / Math.max(h, 1));
  // A long chain as a whole is a thin line: begin at its top, at a size that can be read.
  const readable = Math.max(k, Math.min(0.8, (box.width - 60) / Math.max(w, 1)));
  const use = k < 0.35 ? Math.max(readable, 0.35) : k;
  camera = { k: use, x: (box.width - w * use) / 2, y: use > k ? 30 : (box.height - h * use) / 2 };
  refresh();
}
function whole() {
  const s = sheets[sheet], box = svg.getBoundingClientRect(), k = Math.min((box.width - 40) / Math.max(s.size[0], 1), (box.height - 40) / Math.max(s.size[1], 1));
  camera = { k, x: (box.width - s.size[0] * k) / 2, y: (box.height - s.size[1] * k) / 2 };
  refresh();
}
function zoom(f, x, y) {
  const k = Math.min(4, Math.max(0.01, camera.k * f)), g = k / camera.k;
  camera = { k, x: x - (x - camera.x) * g, y: y - (y - camera.y) * g };
  moved();
}
function centre(n) {
  const s = sheets[sheet], box = svg.getBoundingClientRect();
  if (camera.k < 0.4) camera.k = 0.8;
  camera.x = box.width / 2 - s.x[n] * camera.k; camera.y = box.height / 2 - (s.y[n] + s.h[n] / 2) * camera.k;
  refresh();
}
function light() {
  const s = sheets[sheet], n = selected < 0 ? -1 : itemOf(selected), made = [];
  for (let e = 0; e < s.edges.length && n >= 0; e += 2) {
    if (s.edges[e] !== n && s.edges[e + 1] !== n || !s.routes[e / 2].length) continue;
    made.push(draw('path', { class: 'edge ' + (s.edges[e + 1] === n ? 'in' : 'out'), d: curve(s.routes[e / 2]) }));
  }
  lit.replaceChildren(...made);
}

// Choosing.
function pick(item) { item[0] === 1 ? groupPanel(item[1]) : select(item[1], false); }
function enter(item) {
  if (item[0] === 1) open(item[1]);
  else if (item[0] === 0 && nodes[item[1]][8].length) open(nodes[item[1]][8][0][1]);
  else if (item[0] > 1) select(item[1], true);
}
function select(i, go) {
  const was = selected; selected = i;
  if (i >= 0 && (go || itemOf(i) < 0)) {
    if (itemOf(i) < 0 || items[itemOf(i)][0] === 1) open(nodes[i][4], true);
    centre(itemOf(i));
  }
  for (const j of [was, i]) { const n = j < 0 ? -1 : itemOf(j); if (n >= 0 && drawn.has(n)) { drawn.get(n).remove(); drawn.delete(n); } }
  refresh(); light();
  const link = i < 0 ? '#' : '#node=' + encodeURIComponent(name(i));
  try { history.replaceState(null, '', link); } catch (e) { /* some pages may not */ }
  panel();
}
const table = rows => make('table', {}, ...rows.map(([k, v]) => make('tr', {}, make('td', { title: k }, k), make('td', {}, v))));
const jump = (i, what, more) => make('button', { class: 'row', onclick: () => select(i, true) }, make('b', {}, what), make('span', { title: name(i) }, name(i)), ...(more ? [make('em', {}, more)] : []));
function bars(list) {
  const most = Math.max(...list, 1), s = draw('svg', { class: 'bars', viewBox: '0 0 320 46', preserveAspectRatio: 'none' });
  list.forEach((c, n) => s.append(draw('rect', { x: n * 10 + .5, width: 9, y: 46 - 45 * c / most, height: 45 * c / most })));
  return s;
}
function panel() {
  const out = $('panel'), i = selected;
  if (i < 0) return summary();
  const n = nodes[i], parts = [make('h2', {}, op(i)), make('p', { class: 'dim', id: 'chosen' }, name(i))];
  const facts = [['opset', text[n[2]]]];
  if (n[9]) facts.push(['in the file', text[n[9]]]);
  if (device(i)) facts.push(['device', device(i)]);
  if (kernel(i)) facts.push(['kernel', kernel(i)]);
  if (time(i) !== null) facts.push(['time', `${shownTime(time(i))}, ${(100 * time(i) / (total || 1)).toFixed(1)} %`]);
  if (text[n[14]] && text[n[14]] !== op(i)) facts.push(['ran as', text[n[14]]]);
  parts.push(table(facts));
  if (n[15] !== null) parts.push(jump(n[15], 'part of'));
  if (n[6].length) { const rows = []; for (let a = 0; a < n[6].length; a += 2) rows.push([text[n[6][a]], text[n[6][a + 1]]]); parts.push(make('h3', {}, 'attributes'), table(rows)); }
  if (reads[i].length) parts.push(make('h3', {}, 'inputs'), ...reads[i].map(([a, ap, bp]) => jump(a, bp + ': ' + (text[nodes[a][5][ap]] || ''))));
  if (n[5].length) parts.push(make('h3', {}, 'outputs'), ...n[5].map((f, p) => make('p', {}, `${p}: ${text[f]}`)), ...feeds[i].map(([b, ap]) => jump(b, `${ap} \u2192 ${op(b)}`)));
  for (const w of n[7]) {
    parts.push(make('h3', {}, `constant of input ${w.port}`), make('p', {}, `${w.fact} `, make('span', { class: 'dim' }, w.name)));
    if (w.values) parts.push(make('p', {}, w.values.join(', ')));
    else if (w.seen) parts.push(make('p', { class: 'dim' }, `${w.min} to ${w.max}` + (w.seen < w.len ? `, of the first ${w.seen} elements` : '')));
    if (w.bars) parts.push(bars(w.bars));
  }
  if (n[8].length) parts.push(make('h3', {}, 'bodies'), ...n[8].map(([b, part]) => make('button', { onclick: () => open(part) }, text[b] + ', ' + sheets[part].nodes.length + ' nodes')));
  if (n[10].length) parts.push(make('h3', {}, 'who and why'), ...n[10].map(t => make('p', {}, text[t])));
  out.replaceChildren(...parts);
}
function groupPanel(g) {
  const s = sheets[g], ops = {};
  for (const i of s.nodes) ops[op(i)] = (ops[op(i)] || 0) + 1;
  const rows = Object.entries(ops).sort((a, b) => b[1] - a[1]);
  const facts = [['nodes', String(s.nodes.length)]];
  if (timed) facts.push(['time', `${shownTime(timeOf(s.nodes))}, ${(100 * timeOf(s.nodes) / total).toFixed(1)} %`]);
  $('panel').replaceChildren(make('h2', {}, s.title), table(facts), make('p', {}, make('button', { onclick: () => open(g) }, 'open')), make('h3', {}, 'types'), table(rows.map(([k, v]) => [k, String(v)])));
}
function slowest() {
  const list = nodes.map((n, i) => i).filter(i => time(i)).sort((a, b) => time(b) - time(a)).slice(0, 40);
  return list.flatMap(i => [jump(i, work(i), shownTime(time(i))), make('div', { class: 'meter', style: `width:${(94 * time(i) / longest).toFixed(1)}%` })]);
}
function summary() {
  const parts = [make('h2', {}, data.name || 'model'), table(data.facts)];
  if (timed) parts.push(make('h3', {}, `slowest of ${shownTime(total)}`), ...slowest());
  parts.push(make('h3', {}, 'types'), table(data.ops.map(([k, v]) => [k, String(v)])), make('h3', {}, 'keys'),
    make('p', { class: 'dim' }, '/ search, Enter next; arrows along edges; f fit, w whole, + and - zoom; Esc back; double click opens scopes and bodies'));
  $('panel').replaceChildren(...parts);
}

// Searching.
let found = [], place = -1;
function search(words) {
  const w = words.trim().toLowerCase();
  found = w ? nodes.map((n, i) => i).filter(i => (name(i) + ' ' + op(i) + ' ' + kernel(i) + ' ' + device(i)).toLowerCase().includes(w)) : [];
  hits = new Set(found); place = -1;
  svg.classList.toggle('searching', !!w);
  repaint();
  if (!w) return panel();
  $('panel').replaceChildren(make('h2', { id: 'found' }, `${found.length} of ${count} nodes`), ...found.slice(0, 200).map(i => jump(i, op(i), time(i) ? shownTime(time(i)) : '')),
    ...(found.length > 200 ? [make('p', { class: 'dim' }, `and ${found.length - 200} more`)] : []));
}
$('search').addEventListener('input', e => search(e.target.value));
$('search').addEventListener('keydown', e => {
  if (e.key === 'Enter' && found.length) { place = (place + (e.shiftKey ? found.length - 1 : 1)) % found.length; select(found[place], true); }
  if (e.key === 'Escape') { e.target.value = ''; search(''); e.target.blur(); }
});

// Moving.
svg.addEventListener('wheel', e => { e.preventDefault(); const b = svg.getBoundingClientRect(); zoom(Math.exp(-e.deltaY * (e.deltaMode ? .05 : .0016)), e.clientX - b.left, e.clientY - b.top); }, { passive: false });
let drag = null; const fingers = new Map();
svg.addEventListener('pointerdown', e => { fingers.set(e.pointerId, e); if (fingers.size === 1) drag = { x: e.clientX, y: e.clientY, cx: camera.x, cy: camera.y, far: false }; });
addEventListener('pointermove', e => {
  if (fingers.size === 2 && fingers.has(e.pointerId)) {
    const other = [...fingers.values()].find(f => f.pointerId !== e.pointerId), was = fingers.get(e.pointerId), b = svg.getBoundingClientRect();
    const d = p => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
    zoom(d(e) / Math.max(d(was), 1), (e.clientX + other.clientX) / 2 - b.left, (e.clientY + other.clientY) / 2 - b.top);
    fingers.set(e.pointerId, e); drag = null;
  }
  if (!drag) return;
  const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
  if (drag.far || Math.hypot(dx, dy) > 4) { drag.far = true; svg.classList.add('drag'); camera.x = drag.cx + dx; camera.y = drag.cy + dy; moved(); }
});
addEventListener('pointerup', e => { fingers.delete(e.pointerId); svg.classList.remove('drag'); if (drag && !drag.far && e.target === svg) select(-1); drag = null; });
addEventListener('pointercancel', e => { fingers.delete(e.pointerId); drag = null; });
addEventListener('resize', moved);
addEventListener('keydown', e => {
  if (/^(INPUT|SELECT)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
  const box = svg.getBoundingClientRect(), middle = [box.width / 2, box.height / 2];
  const along = list => { if (list.length) { select(list[0][0], true); e.preventDefault(); } };
  const beside = step => {
    const s = sheets[sheet], n = selected < 0 ? -1 : itemOf(selected); if (n < 0) return;
    const row = items.map((x, m) => m).filter(m => items[m][0] === 0 && s.y[m] === s.y[n]).sort((a, b) => s.x[a] - s.x[b]), to = row[row.indexOf(n) + step];
    if (to !== undefined) select(items[to][1], true);
    e.preventDefault();
  };
  switch (e.key) {
    case '/': $('search').focus(); e.preventDefault(); break;
    case 'ArrowUp': if (selected >= 0) along(reads[selected]); break;
    case 'ArrowDown': selected >= 0 ? along(feeds[selected]) : select(0, true); break;
    case 'ArrowLeft': beside(-1); break;
    case 'ArrowRight': beside(1); break;
    case 'f': fit(); break;
    case 'w': whole(); break;
    case '+': case '=': zoom(1.25, ...middle); break;
    case '-': zoom(0.8, ...middle); break;
    case 'Escape': selected >= 0 ? select(-1) : sheets[sheet].parent !== null && open(sheets[sheet].parent); break;
  }
});
function legend() {
  const rows = colouring === 'time' ? [['fast', heat(0).fill], ['', heat(.1).fill], ['', heat(.4).fill], ['slow', heat(1).fill]]
    : colouring === 'device' ? devices.map((d, n) => [d, palette[n % palette.length]])
    : families.filter((f, n) => nodes.some((x, i) => kind(i) === 0 && family(op(i)) === n)).map(f => [f[0], f[2]]);
  $('legend').replaceChildren(...rows.map(([n, c]) => make('span', {}, make('i', { style: 'background:' + c }), n)));
}
function colour(by) { colouring = by; $('colours').value = by; legend(); repaint(); }
$('colours').addEventListener('change', e => colour(e.target.value));
if (!timed) $('colours').querySelector('[value=time]').disabled = true;
if (!devices.length) $('colours').querySelector('[value=device]').disabled = true;
if (data.scopes === null) $('level').hidden = true;
$('level').addEventListener('click', () => { const deep = sheet !== 0; open(deep ? 0 : data.scopes); $('level').textContent = deep ? 'Scopes' : 'All nodes'; });
$('fit').addEventListener('click', fit);
$('whole').addEventListener('click', whole);

function follow() {
  const at = /^#node=(.*)$/.exec(location.hash); if (!at) return false;
  let wanted = at[1]; try { wanted = decodeURIComponent(wanted); } catch (e) { /* as it is */ }
  const i = nodes.findIndex(n => n[0] === wanted);
  if (i >= 0) select(i, true);
  return i >= 0;
}
addEventListener('hashchange', follow);
$('colours').value = colouring;
legend();
open(data.scopes !== null && count > 300 ? data.scopes : 0);
$('level').textContent = sheet === 0 ? 'Scopes' : 'All nodes';
panel();
follow();

// Opened with #selftest the page uses itself as a person would and tells what it saw.
if (location.hash === '#selftest') {
  const said = [], check = (what, ok) => said.push((ok ? 'ok ' : 'FAILED ') + what);
  open(0);
  check('every node is drawn', items.length > LARGE ? drawn.size > 0 : nodeLayer.childNodes.length === sheets[0].nodes.length);
  const g = nodeLayer.firstChild;
  g.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  check('a click fills the panel', $('chosen') && $('chosen').textContent === g.getAttribute('data-name'));
  check('the link names the node', location.hash === '#node=' + encodeURIComponent(g.getAttribute('data-name')));
  const last = op(count - 1), field = $('search');
  field.value = last; field.dispatchEvent(new Event('input', { bubbles: true }));
  const wanted = nodes.filter((n, i) => (name(i) + op(i) + kernel(i) + device(i)).toLowerCase().includes(last.toLowerCase())).length;
  check('the search finds ' + wanted, $('found').textContent.startsWith(wanted + ' of ' + count));
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  check('Enter goes to the first', hits.has(selected));
  field.value = ''; field.dispatchEvent(new Event('input', { bubbles: true }));
  const k = camera.k; svg.dispatchEvent(new WheelEvent('wheel', { deltaY: -200, bubbles: true, cancelable: true }));
  check('the wheel zooms', camera.k > k);
  const with_input = nodes.findIndex((n, i) => reads[i].length);
  if (with_input >= 0) {
    select(with_input, true); document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }));
    check('an arrow goes along an edge', selected === reads[with_input][0][0]);
  }
  for (let s = 0; s < sheets.length; s++) open(s);
  check(sheets.length + ' sheets open', true);
  open(0);
  check('colours change', ['type', 'device', 'time'].every(c => { colour(c); return true; }));
  check('nothing is loaded from elsewhere', violations.length === 0);
  check('no element came out of a name', document.querySelectorAll('img,iframe,object').length === 0 && document.scripts.length === 2);
  $('selftest').hidden = false;
  $('selftest').textContent = said.join('\n') + `\nnodes ${count} edges ${data.edges.length / 4} drawn ${nodeLayer.childNodes.length} sheets ${sheets.length}\n`;
  document.title = said.every(s => s.startsWith('ok')) ? `ok ${count} nodes` : 'FAILED';
}
})();
