# SPDX-License-Identifier: Apache-2.0
"""plot - bars and lines as SVG, for figures of a bench that are compared with those of a paper. Nothing but the standard library."""
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 370, 60, 150, 50, 50
COLORS = ["#1f6fb2", "#d1622b", "#3f8f4f", "#8457a8", "#7a7a7a", "#b23a5e"]


def ticks(most):
    """About five round numbers from 0 to at least `most`."""
    if most <= 0:
        return [0, 1]
    step = 10 ** math.floor(math.log10(most / 4))
    step = next(step * k for k in (1, 2, 2.5, 5, 10, 20) if step * k * 5 >= most)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


class Plot:
    def __init__(self, title, y_title, most):
        self.ticks = ticks(most)
        self.parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
                      '<rect width="100%" height="100%" fill="white"/>']
        self.text(WIDTH / 2, 20, title, "middle", 14)
        self.text(14, TOP - 12, y_title, "start")
        for tick in self.ticks:
            self.line(LEFT, self.y(tick), WIDTH - RIGHT, self.y(tick), "#dddddd")
            self.text(LEFT - 6, self.y(tick) + 4, "%g" % tick, "end")

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.ticks[-1]

    def text(self, x, y, text, anchor, size=12):
        self.parts.append('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>' % (x, y, anchor, size, html.escape(text)))

    def line(self, x1, y1, x2, y2, color, width=1):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>' % (x1, y1, x2, y2, color, width))

    def legend(self, names):
        for i, name in enumerate(names):
            y = TOP + 18 * i
            self.parts.append('<rect x="%d" y="%d" width="12" height="12" fill="%s"/>' % (WIDTH - RIGHT + 12, y, COLORS[i % len(COLORS)]))
            self.text(WIDTH - RIGHT + 30, y + 10, name, "start")

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts + ["</svg>"]) + "\n")


def bars(path, title, y_title, groups, series):
    """series: {name: a value for each group}."""
    plot = Plot(title, y_title, max(max(values) for values in series.values()))
    wide = (WIDTH - LEFT - RIGHT) / len(groups)
    bar = 0.8 * wide / len(series)
    for g, group in enumerate(groups):
        plot.text(LEFT + (g + 0.5) * wide, HEIGHT - BOTTOM + 18, str(group), "middle")
        for s, values in enumerate(series.values()):
            x, y = LEFT + (g + 0.1) * wide + s * bar, plot.y(values[g])
            plot.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s, %s: %g</title></rect>' % (
                x, y, bar, HEIGHT - BOTTOM - y, COLORS[s % len(COLORS)], html.escape(str(group)), html.escape(list(series)[s]), values[g]))
    plot.legend(series)
    plot.write(path)


def lines(path, title, x_title, y_title, xs, series):
    """series: {name: a value for each of xs}, which are evenly apart."""
    plot = Plot(title, y_title, max(max(values) for values in series.values()))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(xs) - 1)
    for i, x in enumerate(xs):
        plot.text(LEFT + i * step, HEIGHT - BOTTOM + 18, str(x), "middle")
    plot.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_title, "middle")
    for s, values in enumerate(series.values()):
        for i, value in enumerate(values):
            x, y, color = LEFT + i * step, plot.y(value), COLORS[s % len(COLORS)]
            if i:
                plot.line(x - step, plot.y(values[i - 1]), x, y, color, 2)
            plot.parts.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, color))
    plot.legend(series)
    plot.write(path)
