// The report's script: zoom by keyboard, wheel and buttons, words for what is under the pointer,
// figures saved as SVG. Plain JavaScript without parts from elsewhere; text only ever goes into
// textContent and attributes, never into markup. Without it the page still shows everything.
'use strict';
(() => {
  const space = 'http://www.w3.org/2000/svg';
  const make = (name, attributes, parent) => {
    const element = document.createElementNS(space, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(element);
    return element;
  };

  // ---- words under the pointer, and for those who listen ----
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('role', 'status');
  tip.setAttribute('aria-live', 'polite');
  tip.hidden = true;
  document.body.appendChild(tip);
  const hideTip = () => { tip.hidden = true; };
  const showTip = (text, x, y) => {
    if (!text) return hideTip();
    if (tip.textContent !== text) tip.textContent = text;
    tip.hidden = false;
    const width = document.documentElement.clientWidth;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, width - box.width - 8)) + 'px';
    const below = y + 18 + box.height < window.innerHeight;
    tip.style.top = Math.max(4, below ? y + 18 : y - box.height - 10) + 'px';
  };

  const readable = (seconds) => {
    for (const [size, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']])
      if (seconds >= size) return Number((seconds / size).toPrecision(4)) + ' ' + unit;
    return Number((seconds / 1e-12).toPrecision(4)) + ' ps';
  };

  // ---- a view of lanes: its window is a part of the time; boxes come from the data ----
  const lanesView = (svg, data) => {
    const group = svg.querySelector('g.lanes');
    const left = +group.dataset.left, right = +group.dataset.right;
    const rows = [...group.children].map((element, i) => {
      const flat = data.lanes[i].boxes, count = flat.length / 6;
      const begin = new Float64Array(count), end = new Float64Array(count);
      for (let b = 0, now = 0; b < count; ++b) {
        begin[b] = now += flat[6 * b];
        end[b] = now += flat[6 * b + 1];
      }
      return {element, flat, begin, end, y: +element.dataset.y, height: +element.dataset.height,
              who: [data.lanes[i].group, data.lanes[i].name].filter(Boolean).join(', ')};
    });
    const axis = [...svg.querySelectorAll('line.gr, text.mu.m.sm')];
    const bottom = Math.max(...rows.map((row) => row.y + row.height)) + 4;
    const top = Math.min(...rows.map((row) => row.y));
    const marks = make('g', {}, svg);
    const frame = make('rect', {class: 'hl', width: 0, height: 0, 'pointer-events': 'none'}, svg);
    let low = 0, high = data.whole, chosen = null;
    const x = (time) => left + (right - left) * (time - low) / (high - low);
    const firstAfter = (ends, time) => {
      let a = 0, b = ends.length;
      while (a < b) {
        const middle = (a + b) >> 1;
        if (ends[middle] > time) b = middle; else a = middle + 1;
      }
      return a;
    };

    const drawRow = (row) => {
      const paths = new Map(), labels = [];
      let last = -1;
      for (let b = firstAfter(row.end, low); b < row.begin.length && row.begin[b] < high; ++b) {
        const from = Math.max(x(row.begin[b]), left), to = Math.min(x(row.end[b]), right);
        if (to < last + 0.4) continue;  // nothing new on this pixel
        last = to;
        const paint = row.flat[6 * b + 2], wide = Math.max(to - from, 0.3);
        const inside = wide > 4 ? wide - 0.6 : wide;
        paths.set(paint, (paths.get(paint) || '') + 'M' + from.toFixed(2) + ' ' + row.y + 'h' +
          inside.toFixed(2) + 'v' + row.height + 'h-' + inside.toFixed(2) + 'z');
        const label = data.texts[row.flat[6 * b + 3]];
        if (label && row.height >= 12 && 6.2 * label.length + 2 < wide && labels.length < 400)
          labels.push([(from + to) / 2, label, data.classes[paint]]);
      }
      row.element.replaceChildren();
      for (const [paint, d] of paths) make('path', {d, class: data.classes[paint]}, row.element);
      for (const [at, label, name] of labels)
        make('text', {x: at, y: row.y + row.height / 2 + 3.6, class: 't' + name + ' m sm'},
             row.element).textContent = label;
    };

    const drawAxis = () => {
      for (const element of axis.splice(0)) element.remove();
      marks.replaceChildren();
      const second = data.tick * 1e-12, span = (high - low) * second;
      const rough = span / 8, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
      for (let i = Math.ceil(low * second / step); i * step <= high * second * 1.000001; ++i) {
        const at = x(i * step / second);
        make('line', {x1: at, x2: at, y1: top, y2: bottom, class: 'gr'}, marks);
        make('text', {x: at, y: bottom + 14, class: 'mu m sm'}, marks).textContent =
          i === 0 ? '0' : readable(i * step);
      }
    };

    const showFrame = () => {
      if (!chosen) { frame.setAttribute('width', 0); return; }
      const from = Math.max(x(chosen.row.begin[chosen.box]), left);
      const to = Math.min(x(chosen.row.end[chosen.box]), right);
      frame.setAttribute('x', from);
      frame.setAttribute('y', chosen.row.y - 0.5);
      frame.setAttribute('width', Math.max(to - from, 1));
      frame.setAttribute('height', chosen.row.height + 1);
    };
    const draw = () => { rows.forEach(drawRow); drawAxis(); showFrame(); };

    const words = (row, b) => {
      const second = data.tick * 1e-12, flat = row.flat;
      const length = readable((row.end[b] - row.begin[b]) * second);
      const waited = data.texts[flat[6 * b + 5]];
      return row.who + ': ' + data.texts[flat[6 * b + 4]] + ', ' + length + ' from ' +
        readable(row.begin[b] * second) + ' on' + (waited ? '; ' + waited : '');
    };
    const choose = (row, box) => {
      chosen = row && box >= 0 && box < row.begin.length ? {row, box} : null;
      showFrame();
      return chosen ? words(row, box) : '';
    };

    return {
      zoom(factor, middle = 0.5) {
        const at = low + middle * (high - low);
        const span = Math.min(data.whole, Math.max((high - low) / factor, data.whole / 1e5));
        low = Math.min(Math.max(at - middle * span, 0), data.whole - span);
        high = low + span;
        draw();
      },
      move(part) {
        const span = high - low;
        low = Math.min(Math.max(low + part * span, 0), data.whole - span);
        high = low + span;
        draw();
      },
      rise() {},
      whole() { low = 0; high = data.whole; draw(); },
      isWhole: () => low === 0 && high === data.whole,
      place: (px) => Math.min(Math.max((px - left) / (right - left), 0), 1),
      at(px, py) {
        const row = rows.find((r) => py >= r.y - 1 && py <= r.y + r.height + 1);
        if (!row || px < left || px > right) return choose(null);
        const time = low + (high - low) * (px - left) / (right - left);
        const near = (high - low) / (right - left);  // a pixel of mercy
        const box = firstAfter(row.end, time - near);
        return choose(row, row.begin[box] <= time + near ? box : -1);
      },
      next(step) {
        let row = chosen ? chosen.row : rows[0];
        let box = chosen ? chosen.box + step : firstAfter(row.end, low);
        if (box < 0 || box >= row.begin.length) {
          const beside = rows[rows.indexOf(row) + step];
          if (!beside) return choose(row, Math.min(Math.max(box, 0), row.begin.length - 1));
          row = beside;
          box = step > 0 ? 0 : row.begin.length - 1;
        }
        const text = choose(row, box), span = high - low;
        if (chosen && (row.begin[box] < low || row.end[box] > high)) {
          low = Math.min(Math.max(row.begin[box] - span / 4, 0), data.whole - span);
          high = low + span;
          draw();
        }
        return text;
      },
      mark: () => frame,
    };
  };

  // ---- any other figure: its window is a part of the picture ----
  const pictureView = (svg) => {
    const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
    let box = [0, 0, width, height], chosen = -1;
    const told = [], words = new Map();
    for (const title of [...svg.querySelectorAll(':scope g title, :scope > * > title')]) {
      const element = title.parentNode;
      words.set(element, title.textContent);
      told.push(element);
      title.remove();
    }
    const frame = make('rect', {class: 'hl', width: 0, height: 0, 'pointer-events': 'none'}, svg);
    const draw = () => svg.setAttribute('viewBox', box.join(' '));
    const outline = (element) => {
      const found = element && element.getBBox();
      const to = found || {x: 0, y: 0, width: 0, height: 0};
      for (const key of ['x', 'y', 'width', 'height']) frame.setAttribute(key, to[key]);
    };
    const keep = (value, size, whole) => Math.min(Math.max(value, 0), whole - size);
    return {
      zoom(factor, middle = 0.5, middleY = 0.5) {
        const w = Math.min(width, Math.max(box[2] / factor, width / 64)), h = height * w / width;
        const x = box[0] + middle * (box[2] - w), y = box[1] + middleY * (box[3] - h);
        box = [keep(x, w, width), keep(y, h, height), w, h];
        draw();
      },
      move(part) { box[0] = keep(box[0] + part * box[2], box[2], width); draw(); },
      rise(part) { box[1] = keep(box[1] + part * box[3], box[3], height); draw(); },
      whole() { box = [0, 0, width, height]; draw(); },
      isWhole: () => box[2] === width,
      place: (px) => (px - box[0]) / box[2],
      at(px, py, target) {
        outline(words.has(target) ? target : null);
        return words.get(target) || '';
      },
      next(step) {
        if (!told.length) return '';
        chosen = (chosen + step + told.length) % told.length;
        outline(told[chosen]);
        return words.get(told[chosen]);
      },
      mark: () => frame,
    };
  };

  const save = (svg, original, view, name) => {
    const text = view.isWhole() ? original : new XMLSerializer().serializeToString(svg);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], {type: 'image/svg+xml'}));
    link.download = name + '.svg';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const setUp = (section) => {
    const frame = section.querySelector('.frame'), svg = frame.querySelector('svg');
    const name = section.dataset.figure;
    const original = new XMLSerializer().serializeToString(svg);
    const label = svg.querySelector(':scope > title');
    svg.setAttribute('aria-label', label.textContent);
    label.remove();  // or browsers show it over everything
    const source = document.getElementById('data-' + name);
    const data = source ? JSON.parse(source.textContent) : null;
    const view = data ? lanesView(svg, data) : pictureView(svg);
    if (data) svg.querySelectorAll('g.lanes title').forEach((title) => title.remove());
    const point = (event) => {
      const matrix = svg.getScreenCTM().inverse();
      return new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    };
    const tell = (text) => {
      const box = view.mark().getBoundingClientRect(), all = frame.getBoundingClientRect();
      const x = Math.min(Math.max(box.left, all.left), all.right);
      showTip(text, x, Math.max(box.bottom, all.top));
    };

    let drag = null;
    svg.addEventListener('pointermove', (event) => {
      const at = point(event);
      if (drag && event.buttons & 1) {
        const shift = view.place(drag.x) - view.place(at.x);
        view.move(shift);
        drag = point(event);
        return hideTip();
      }
      showTip(view.at(at.x, at.y, event.target), event.clientX, event.clientY);
    });
    svg.addEventListener('pointerdown', (event) => {
      if (event.pointerType === 'mouse' && !view.isWhole()) drag = point(event);
    });
    for (const end of ['pointerup', 'pointerleave'])
      svg.addEventListener(end, () => { drag = null; if (end === 'pointerleave') hideTip(); });
    svg.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls, unless asked to zoom
      event.preventDefault();
      view.zoom(event.deltaY < 0 ? 1.25 : 0.8, view.place(point(event).x));
    }, {passive: false});

    const keys = {
      '+': () => view.zoom(1.5), '=': () => view.zoom(1.5), '-': () => view.zoom(1 / 1.5),
      0: () => view.whole(), ArrowLeft: () => view.move(-0.2), ArrowRight: () => view.move(0.2),
      ArrowUp: () => view.rise(-0.2), ArrowDown: () => view.rise(0.2),
      n: () => tell(view.next(1)), p: () => tell(view.next(-1)), Escape: hideTip,
    };
    frame.addEventListener('keydown', (event) => {
      const isUpDown = event.key === 'ArrowUp' || event.key === 'ArrowDown';
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      if (isUpDown && (data || view.isWhole())) return;  // then the page scrolls
      event.preventDefault();
      keys[event.key]();
    });
    frame.addEventListener('blur', hideTip);

    const tools = document.createElement('div');
    tools.className = 'tools';
    const button = (text, what, action) => {
      const element = document.createElement('button');
      element.type = 'button';
      element.textContent = text;
      element.setAttribute('aria-label', what + ': ' + svg.getAttribute('aria-label'));
      element.addEventListener('click', action);
      tools.appendChild(element);
    };
    button('+', 'Zoom in', () => view.zoom(1.5));
    button('−', 'Zoom out', () => view.zoom(1 / 1.5));
    button('Whole', 'Show the whole figure', () => view.whole());
    button('Save as SVG', 'Save as SVG', () => save(svg, original, view, name));
    frame.before(tools);
  };
  document.querySelectorAll('section[data-figure]').forEach(setUp);
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });
})();
