"""Fits what a version for a launch takes that stands beside the original, by what is known of the version alone.

    python3 lab/fits/fit/constants.py FITS RESULTS.json=CUBINS… [-o crates/model/src/constants.json]

RESULTS and CUBINS (unpacked) are what `bench/unmeasured.py specialize --alone --cubins` wrote, FITS is the program `warpwright-fits`.
One ensemble of regression trees over the features of crates/model/src/features.rs, of the build without the original. Prints what a
choice would have made of each family by an ensemble that has not seen it. Needs numpy and scikit-learn.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fit import flat  # noqa: E402

PROMISES = [0.03, 0.05, 0.06, 0.08]


def rows(fits, results, cubins):
    """Family, features of the version alone, logarithm of the time of both over the default's, and whether it is apart from it."""
    with open(results) as file:
        records = [r for r in json.load(file)['records'] if 'guarded' in r and 'specialize' in r]
    plain = []
    for r in records:
        for build in ('default', 'specialize'):
            ns = 1000 * r['us'] * (1 if build == 'default' else r[build]['relative_time'])
            plain.append(dict(program=r['kernel'].rsplit('_', 1)[0], split='fit', kernel=r['kernel'], grid=[r['grid'], 1, 1],
                              block=[r['block'], 1, 1], dynamic_smem=0, build=build, file=build, registers=r['registers'],
                              median_ns=[ns], total_ns=[ns]))
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump(dict(records=plain), file)
        file.flush()
        terms = subprocess.run([fits, 'terms', file.name, cubins], capture_output=True, text=True, check=True).stdout
    features = {t['kernel']: t['features'] for t in map(json.loads, terms.splitlines()) if t['build'] == 'specialize'}
    return [(r['kernel'].rsplit('_', 1)[0], features[r['kernel']], math.log(r['guarded']['relative_time']), r['guarded']['apart'])
            for r in records if r['kernel'] in features]


def fitted(x, y):
    return GradientBoostingRegressor(n_estimators=150, max_depth=3, learning_rate=0.05, subsample=0.7, min_samples_leaf=6, loss='huber',
                                     random_state=1).fit(x, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('fits')
    parser.add_argument('results', nargs='+')
    parser.add_argument('-o', dest='output')
    options = parser.parse_args()
    all_ = [row for pair in options.results for row in rows(options.fits, *pair.split('='))]
    family = np.array([row[0] for row in all_])
    x, y, apart = np.array([row[1] for row in all_]), np.array([row[2] for row in all_]), np.array([row[3] for row in all_])
    unseen = np.zeros(len(y))
    for name in sorted(set(family)):
        unseen[family == name] = fitted(x[family != name], y[family != name]).predict(x[family == name])
    print(f'{len(y)} kernels: all {np.exp(y.mean()):.4f}, best of both {np.exp(np.minimum(y, 0).mean()):.4f}')
    for promise in PROMISES:
        taken = unseen < math.log(1 - promise)
        slower = taken & apart & (y > math.log(1.02))
        print(f'promise {promise}: {taken.sum()} taken, {np.exp(np.where(taken, y, 0).mean()):.4f}, slower by 2%: {slower.sum()}')
    if options.output:
        model = fitted(x, y)
        document = dict(gain=dict(base=float(np.ravel(model.init_.constant_ if hasattr(model.init_, 'constant_') else model.init_.quantile)[0]),
                                  **flat(model)),
                        low=[float(f'{v:.5g}') for v in x.min(0)], high=[float(f'{v:.5g}') for v in x.max(0)], checks=[])
        for row in x[::max(1, len(x) // 12)]:
            document['checks'].append((list(row), math.exp(model.predict([row])[0])))
        with open(options.output, 'w') as file:
            json.dump(document, file, separators=(',', ':'))
            file.write('\n')


if __name__ == '__main__':
    main()
