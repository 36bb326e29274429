// SPDX-License-Identifier: Apache-2.0
// plot.tsx - uPlot in the page's colours.
import uPlot from 'uplot';
import { useEffect, useRef } from 'preact/hooks';
import { color } from './data';

// Steps of an axis of whole numbers.
const COUNTS = Array.from({ length: 36 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
export type Series = { label: string; color: string; steps?: boolean; points?: boolean; fill?: boolean; dash?: number[]; value?: (v: number) => string };
export function Plot({ x, y, series, xLabel, log, xText, yText, label, height = 220, mark, counts }: {
  x: number[]; y: (number | null)[][]; series: Series[]; xLabel?: string; log?: boolean; label: string; height?: number;
  xText: (v: number) => string; yText: (v: number) => string; mark?: number; counts?: boolean;
}) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = ref.current!, axis = { stroke: color('--dim'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line') } };
    const make = () => {
      box.replaceChildren();
      return new uPlot({
        width: Math.max(box.clientWidth, 200), height, padding: [8, 30, 0, 0], legend: { live: mark === undefined },
        scales: { x: { time: false, distr: log ? 3 : 1 }, y: { range: (_: unknown, a: number, b: number) => [Math.min(a, 0), b > a ? b * 1.05 : a + 1] } },
        axes: [{ ...axis, label: xLabel, labelSize: 18, values: (_: uPlot, v: number[]) => v.map((n) => (n === null ? '' : xText(n))) },
          { ...axis, size: 74, incrs: counts ? COUNTS : undefined, values: (_: uPlot, v: number[]) => v.map(yText) }],
        series: [{ label: xLabel ?? '', value: (_: uPlot, v: number | null) => (v === null ? '–' : xText(v)) },
          ...series.map((s) => ({
            label: s.label, stroke: color(s.color), width: s.points ? 0 : 2, dash: s.dash, fill: s.fill ? color(`${s.color}-soft`) : undefined,
            paths: s.steps ? uPlot.paths.stepped!({ align: 1 }) : s.points ? () => null : undefined,
            points: { show: !!s.points, size: 9, fill: color(s.color) }, value: (_: uPlot, v: number | null) => (v === null ? '–' : yText(v)),
          }))],
        cursor: { drag: { x: false, y: false } },
        hooks: { draw: [(u: uPlot) => {
          if (mark === undefined) return;
          const at = u.valToPos(mark, 'x', true);
          u.ctx.fillStyle = color('--ink');
          u.ctx.fillRect(at - 1, u.bbox.top, 2, u.bbox.height);
        }] },
      }, [x, ...y] as uPlot.AlignedData, box);
    };
    let u = make();
    const o = new ResizeObserver(() => box.clientWidth && u.setSize({ width: box.clientWidth, height }));
    o.observe(box);
    const dark = matchMedia('(prefers-color-scheme: dark)'), again = () => (u = make());
    dark.addEventListener('change', again);
    return () => { o.disconnect(); dark.removeEventListener('change', again); u.destroy(); };
  }, [x, y, mark, log, xLabel]);
  return <div class="plot" role="img" aria-label={label} ref={ref} />;
}
