"""Fits the learned correction: what a build takes beside the default build, and how likely it is slower.

    python3 lab/fits/fit/fit.py TERMS.jsonl… [-o crates/model/src/correction.json] [--held-out]

TERMS is what `warpwright-fits terms` wrote. Two ensembles of regression trees over the features of
crates/model/src/features.rs: the expected logarithm of the time over the default's, and the odds of being slower by more
than 2%. A logistic curve makes the odds a probability. The ensembles are fitted on the part
`fit`; the curve on programs that the ensemble in question has not seen, `validation` among them; `held-out` is not looked
at without `--held-out`. Needs numpy and scikit-learn.
"""
import argparse
import collections
import hashlib
import json
import math

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

SHORTEST = 4000     # ns: what takes less is mostly its launch
SLOWER = 0.02
RISK = 0.05
RATIOS = [0, 1, 2, 3, 4, *range(10, 17), 22, 23]    # features that are logarithms of ratios: 5% is no other kind of build


class Kernel:
    def __init__(self, rows):
        rows = sorted(rows, key=lambda r: r['build'] != 'default')
        self.rows, self.default = rows, rows[0]
        self.program, self.split = rows[0]['program'], rows[0]['split']
        self.times = np.array([r['ns'] / rows[0]['ns'] for r in rows])
        self.x = np.array([r['features'] for r in rows])


def read(paths):
    kernels = collections.defaultdict(dict)
    for path in paths:
        for line in open(path):
            row = json.loads(line)
            kernels.setdefault((path, row['program'], row['kernel']), {})[row['build']] = row
    found = [Kernel(list(rows.values())) for rows in kernels.values()]
    # The same kernel may be in several files: the one with the most builds counts.
    best = {}
    for k in found:
        key = k.program, k.default['kernel']
        if k.default['build'] == 'default' and k.default['ns'] >= SHORTEST and len(k.rows) > len(getattr(best.get(key), 'rows', [])):
            best[key] = k
    return list(best.values())


def stacked(kernels):
    """Rows of all builds but the default, with weights: a program counts as much as the root of its kernels."""
    programs = collections.Counter(k.program for k in kernels)
    x, y, w = [], [], []
    for k in kernels:
        n = len(k.rows) - 1
        x.append(k.x[1:])
        y.append(np.log(k.times[1:]))
        w.append(np.full(n, 1 / math.sqrt(max(n, 1)) / math.sqrt(programs[k.program])))
    return np.concatenate(x), np.concatenate(y), np.concatenate(w)


def fit(kernels, size, depth, rate, seed=7):
    x, y, w = stacked(kernels)
    clipped = np.clip(y, -0.7, 0.7)
    more = dict(n_estimators=size, max_depth=depth, learning_rate=rate, subsample=0.6, max_features=0.5, min_samples_leaf=25, random_state=seed)
    gain = GradientBoostingRegressor(loss='huber', alpha=0.95, **more).fit(x, clipped, sample_weight=w)
    loss = GradientBoostingClassifier(**more).fit(x, y > math.log(1 + SLOWER), sample_weight=w)
    return gain, loss


def predictions(model, kernel):
    gain, loss = model
    return gain.predict(kernel.x), loss.decision_function(kernel.x)


def active(row):
    return min(row['warps'], row['grid_warps'] or 1 << 30)


# Features by their place in crates/model/src/features.rs.
ACTIVE, LOCAL_LOADS, LOCAL_STORES, SHARED, ISSUE, LATENCY, TRAFFIC = 11, 17, 18, 20, 30, 31, 32


def is_trade(row):
    """As crates/driver/src/score.rs has it."""
    x = row['features']
    pays = x[LOCAL_LOADS] + x[LOCAL_STORES] + x[SHARED] > 0.01 or x[ISSUE] > max(x[LATENCY], x[TRAFFIC])
    return (row['build'].startswith('smem') and pays) or (x[ACTIVE] > 0 and x[TRAFFIC] > 2 * max(x[ISSUE], x[LATENCY]))


def need(k, row, room=True):
    """What a build must promise to save: as crates/driver/src/choose.rs has it; without `room`, as it was before."""
    default, of_block = k.default, row['warps'] // max(1, row['blocks'])
    if room and row['warps'] < default['warps'] and row['warps'] < active(row) + of_block:
        return 0.3
    if (room and is_trade(row)) or row['local_bytes'] > default['local_bytes'] or (not room and active(row) < active(default)):
        return 0.15
    return 0.05


def promise(k, row):
    return row['cycles'] / k.default['cycles']


def eligible(k, room=True):
    """Builds that promise enough: no others are ever chosen."""
    return [i for i in range(1, len(k.rows)) if promise(k, k.rows[i]) < 1 - need(k, k.rows[i], room)]


def calibrate(scored):
    """The curve, from pairs of a kernel and the odds of its builds, which an ensemble gave that has not seen the program.
    All builds count: of those that promise enough too few are slower (22 of 428) to tell them apart."""
    score, slower, weight = [], [], []
    for k, odds in scored:
        among = range(1, len(k.rows))
        score += list(odds[1:])
        slower += list(k.times[1:] > 1 + SLOWER)
        weight += [1 / math.sqrt(max(1, len(among)))] * len(among)
    print(f'curve from {len(score)} builds, {sum(slower)} of them slower')
    curve = LogisticRegression(C=1.0).fit(np.array(score)[:, None], slower, sample_weight=weight)
    return float(curve.coef_[0, 0]), float(curve.intercept_[0])


def unseen(kernels, options):
    """Each kernel with the odds of an ensemble that was fitted without a fifth of the programs, its own among them."""
    fold = {k.program: hashlib.sha256(k.program.encode()).digest()[1] % 5 for k in kernels}
    found = []
    for n in range(5):
        model = fit([k for k in kernels if fold[k.program] != n], options.size, options.depth, options.rate)
        found += [(k, predictions(model, k)[1]) for k in kernels if fold[k.program] == n]
    return found


def guarded(scored, curve):
    """What the guard takes and gives on programs that the ensemble has not seen; how well its probabilities hold."""
    risk = [1 / (1 + np.exp(-(curve[0] * odds + curve[1]))) for _, odds in scored]
    for limit in [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0]:
        chosen = np.array([k.times[by_promise(k, r < limit)] for (k, _), r in zip(scored, risk)])
        print(f'unseen programs, risk under {limit}:', summary(chosen))
    points = [(r[i], k.times[i] > 1 + SLOWER) for (k, _), r in zip(scored, risk) for i in eligible(k)]
    for a, b in [(0, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 1.01)]:
        inside = [t for q, t in points if a <= q < b]
        print(f'   risk {a} to {b}: {len(inside)} builds, slower {np.mean(inside) if inside else 0:.3f}')


def headroom(kernels):
    """What the best choice is worth, and what keeps ours from it: kernels whose best build is 5% faster, by cause."""
    print(f'-- {len(kernels)} kernels: the best measured build takes {np.exp(np.mean([np.log(k.times.min()) for k in kernels])):.3f} of the default')
    causes = collections.defaultdict(list)
    for k in kernels:
        best = int(np.argmin(k.times))
        chosen = by_promise(k, [True] * len(k.rows))
        lost = math.log(k.times[chosen] / k.times[best])
        b, d = k.rows[best], k.default
        if k.times[best] > 0.95 or lost < 0.01:
            why = 'taken, or the best build is not 5% faster'
        elif d['ns'] < 2 * SHORTEST:
            why = 'under 8 us: noise of the launch'
        elif promise(k, b) < 0.95:
            why = 'promised, but less than it must, or another build promised more'
        elif b['registers'] == d['registers'] or (b['warps'] == d['warps'] and abs(promise(k, b) - 1) < 0.03):
            why = 'the same resources: another order of instructions'
        elif b['registers'] > d['registers']:
            why = 'more registers, fewer warps: nothing promised'
        else:
            why = 'fewer registers, more warps: nothing promised'
        causes[why].append((lost, k, b))
    for why, found in sorted(causes.items(), key=lambda c: -sum(f[0] for f in c[1])):
        print(f'   {sum(f[0] for f in found) / len(kernels):.4f} of the time: {why}: {len(found)} kernels')
        for lost, k, b in sorted(found, key=lambda f: -f[0])[:6] if not why.startswith('taken') else []:
            print(f'      {k.times.min():.3f} {k.program} {k.default["kernel"][:40]} {k.default["ns"] / 1000:.0f} us: {b["build"]}, registers '
                  f'{k.default["registers"]} to {b["registers"]}, warps {k.default["warps"]} to {b["warps"]} (grid {b["grid_warps"]}), promised {promise(k, b):.2f}')


def risks(model, curve, k):
    expected, odds = predictions(model, k)
    return np.exp(expected), 1 / (1 + np.exp(-(curve[0] * odds + curve[1])))


def known(k, bounds):
    return ((k.x >= bounds[0]) & (k.x <= bounds[1])).all(axis=1)


def summary(times):
    return f'{np.exp(np.log(times).mean()):.3f} slower>2% {int((times > 1.02).sum())} >5% {int((times > 1.05).sum())} most {times.max():.3f}'


def by_promise(k, allowed, room=True):
    """The rule of crates/driver/src/choose.rs among the builds allowed."""
    return min((i for i in eligible(k, room) if allowed[i]), key=lambda i: (promise(k, k.rows[i]), i), default=0)


def rules(k):
    rows = k.rows
    limits = [i for i, r in enumerate(rows) if i == 0 or r['build'].startswith('maxr')]
    return {
        'default': 0,
        'rule before': by_promise(k, [True] * len(rows), room=False),
        'promise and room': by_promise(k, [True] * len(rows)),
        'RegDem': min(range(len(rows)), key=lambda i: (rows[i]['lone'] / rows[i]['warps'], i)),
        'TPSC': min(range(len(rows)), key=lambda i: (*rows[i]['tpsc'], i)),
        'highest occupancy': min(range(len(rows)), key=lambda i: (-rows[i]['warps'], i)),
        'fewest spills': min(range(len(rows)), key=lambda i: (rows[i]['local_bytes'], i)),
        'best limit, measured': min(limits, key=lambda i: k.times[i]),
        'best build, measured': int(np.argmin(k.times)),
    }


def table(kernels, title):
    print(f'-- {title}: {len(kernels)} kernels of {len({k.program for k in kernels})} programs, {sum(len(k.rows) for k in kernels)} builds')
    if kernels:
        for name in rules(kernels[0]):
            print(f'   {name:<22}', summary(np.array([k.times[rules(k)[name]] for k in kernels])))


def ranks(model, kernels):
    """Spearman's correlation of expected and measured times, of kernels with a spread beyond 3%."""
    found = []
    for k in kernels:
        if len(k.rows) > 3 and k.times.max() / k.times.min() > 1.03:
            expected, _ = predictions(model, k)
            a, b = (np.argsort(np.argsort(v)).astype(float) for v in (expected, k.times))
            if a.std() and b.std():
                found.append(np.corrcoef(a, b)[0, 1])
    return np.array(found)


def flat(estimator):
    """Trees as parallel arrays: feature (-1: leaf), threshold or value, and the right child; the left one comes next."""
    feature, at, right, starts = [], [], [], []
    rate = estimator.learning_rate
    for tree in estimator.estimators_[:, 0]:
        t = tree.tree_
        starts.append(len(feature))
        def put(node):
            here = len(feature)
            feature.append(int(t.feature[node]) if t.children_left[node] >= 0 else -1)
            at.append(float(f'{t.threshold[node] if t.children_left[node] >= 0 else rate * t.value[node][0, 0]:.9g}'))
            right.append(0)
            if t.children_left[node] >= 0:
                put(t.children_left[node])
                right[here] = len(feature)
                put(t.children_right[node])
        put(0)
    return dict(starts=starts, feature=feature, at=at, right=right)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('terms', nargs='+')
    parser.add_argument('-o', '--output')
    parser.add_argument('--held-out', action='store_true')
    parser.add_argument('--size', type=int, default=150)
    parser.add_argument('--depth', type=int, default=3)
    parser.add_argument('--rate', type=float, default=0.05)
    parser.add_argument('--limit', type=float, default=RISK, help='the probability of a loss from which on the default stays')
    options = parser.parse_args()
    kernels = read(options.terms)
    part = {s: [k for k in kernels if k.split == s] for s in ['fit', 'validation', 'held-out']}
    foreign = {s: [k for k in part[s] if not k.program.startswith('made/')] for s in part}
    shown = ['fit', 'validation'] + (['held-out'] if options.held_out else [])
    for s in shown:
        table(part[s], s)
        table(foreign[s], f'{s}, foreign')
    headroom(part['fit'] + part['validation'])
    model = fit(part['fit'], options.size, options.depth, options.rate)
    scored = unseen(part['fit'], options) + [(k, predictions(model, k)[1]) for k in part['validation']]
    curve = calibrate(scored)
    guarded(scored, curve)
    x, _, _ = stacked(part['fit'])
    low, high = x.min(axis=0), x.max(axis=0)
    wide = 0.1 * (high - low)
    wide[RATIOS] = np.maximum(wide[RATIOS], 0.05)
    bounds = low - wide - 1e-9, high + wide + 1e-9
    for s in shown:
        for kind, list_ in [('all', part[s]), ('foreign', foreign[s])]:
            if not list_:
                continue
            for limit in [0.05, 0.1, 0.2, 0.4, 1.0]:
                for inside in [True, False]:
                    chosen = []
                    for k in list_:
                        _, risk = risks(model, curve, k)
                        chosen.append(k.times[by_promise(k, (risk < limit) & (known(k, bounds) | (not inside)))])
                    print(f'{s:<11} {kind:<8} risk under {limit} {"known" if inside else "any  "}:', summary(np.array(chosen)))
            r = ranks(model, list_)
            print(f'{s} {kind}: rank correlation mean {r.mean():.3f} median {np.median(r):.3f} of {len(r)}; '
                  f'unknown builds {np.mean(np.concatenate([~known(k, bounds)[1:] for k in list_])):.3f}')
            points = [(float(q), bool(t > 1 + SLOWER)) for k in list_ for q, t in zip(risks(model, curve, k)[1][eligible(k)], k.times[eligible(k)])]
            for a, b in [(0, 0.01), (0.01, 0.02), (0.02, 0.03), (0.03, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 1.01)]:
                inside = [t for q, t in points if a <= q < b]
                if inside:
                    print(f'   risk {a} to {b}: {len(inside)} builds, slower {np.mean(inside):.3f}')
    if options.output:
        gain, loss = model
        document = dict(
            gain=dict(base=float(np.ravel(gain.init_.constant_ if hasattr(gain.init_, 'constant_') else 0)[0]), **flat(gain)),
            loss=dict(base=float(math.log(loss.init_.class_prior_[1] / loss.init_.class_prior_[0])), **flat(loss)),
            curve=curve, low=[float(f'{v:.5g}') for v in bounds[0]], high=[float(f'{v:.5g}') for v in bounds[1]],
            risk=options.limit, checks=[])
        for k in part['validation'][::max(1, len(part['validation']) // 12)]:
            row = k.x[-1:]
            odds = curve[0] * loss.decision_function(row)[0] + curve[1]
            document['checks'].append((list(row[0]), math.exp(gain.predict(row)[0]), 1 / (1 + math.exp(-odds))))
        with open(options.output, 'w') as file:
            json.dump(document, file, separators=(',', ':'))
            file.write('\n')


if __name__ == '__main__':
    main()
