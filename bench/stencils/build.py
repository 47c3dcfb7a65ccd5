#!/usr/bin/env python3
'''Builds the scheduled variants of the stencil benchmarks that bench/stencils/run.sh measures.

usage: build.py FOLDER    (nvcc from $WARPWRIGHT_TOOLKIT/bin or the PATH; no GPU needed)

FOLDER gets src/*.cu, obj/*.cubin and a manifest for each stencil; copy it to the machine with the
GPU and run its run.sh. Variants: `ref` is the input as written, without reassociation; r_U_bX is
scheduled, unrolled by U, in blocks of X; r_U_RN with at most N registers; w_U is unrolled and not
scheduled; sN_… is split into N kernels.
'''
import subprocess,re,os,sys
from concurrent.futures import ThreadPoolExecutor
import shutil
ROOT=os.path.abspath(os.path.join(os.path.dirname(__file__),'..','..'))
S=os.path.join(ROOT,'target/release/examples/schedule_stencil')
E=os.path.join(ROOT,'examples/stencils')+'/'
TK=os.environ.get('WARPWRIGHT_TOOLKIT')
NVCC=os.path.join(TK,'bin/nvcc') if TK else 'nvcc'
SZ={'2d25pt':'M=8196,N=8196','2d64pt':'M=8200,N=8200','2d81pt':'M=8200,N=8200','3d27pt':'L=514,M=514,N=514','3d125pt':'L=516,M=516,N=516','hypterm':'L=308,M=308,N=308','rhs4th3fort':'L=304,M=304,N=304','derivative':'L=304,M=304,N=304'}
def variants(s):
    yield ('ref','--as-written',False,None)
    yield ('plain','',True,None)
    if s[0]=='2':
        for u in ['j=4','j=8','j=16','j=4,i=2','j=8,i=2']:
            for b in ['32,4,1','64,2,1','128,1,1','32,8,1']:
                yield (f'r_{u}_b{b}',f'--unroll {u} --block {b}',True,None)
            yield (f'w_{u}',f'--unroll {u} --as-written --block 64,2,1',True,None)
            for reg in [40,48,64,96]: yield (f'r_{u}_R{reg}',f'--unroll {u} --block 64,2,1',True,reg)
    elif s[0]=='3':
        for u in ['k=4','k=8','k=2,j=2','k=4,j=2','k=2,j=4','k=4,j=4','k=8,j=2','k=4,j=2,i=2']:
            for b in ['32,4,1','32,2,2','64,2,1','32,8,1']:
                yield (f'r_{u}_b{b}',f'--unroll {u} --block {b}',True,None)
            yield (f'w_{u}',f'--unroll {u} --as-written',True,None)
            for reg in [40,48,64,96]: yield (f'r_{u}_R{reg}',f'--unroll {u}',True,reg)
    else:
        for u in ['','k=2','j=2','i=2']:
            un=f'--unroll {u}' if u else ''
            for b in ['32,4,1','32,2,2','64,2,1','32,8,1']:
                yield (f'r_{u}_b{b}',f'{un} --block {b}',True,None)
            for reg in [48,56,64,80,96,128,168]: yield (f'r_{u}_R{reg}',f'{un}',True,reg)
            yield (f'w_{u}',f'{un} --as-written',True,None)
        for n in [2,3,5]:
            if n==5 and s[0]=='r': continue
            for u in ['','k=2','j=2','k=2,j=2']:
                un=f'--unroll {u}' if u else ''
                for reg in [None,64,96]: yield (f's{n}_{u}_R{reg}',f'{un} --split {n}',True,reg)
def one(a):
    s,(name,extra,re_,reg)=a
    n=s+'.'+re.sub(r'[=,]','',name)
    cmd=[S,f'{E}{s}.stencil','--size',SZ[s]]+(['--reassociate'] if re_ else [])+extra.split()+(['--registers',str(reg)] if reg else [])
    t=subprocess.run(cmd,capture_output=True,text=True)
    if t.returncode: return (s,n,None,t.stderr)
    open(f'src/{n}.cu','w').write(t.stdout)
    la=subprocess.run(cmd+['--launch'],capture_output=True,text=True).stdout
    r=subprocess.run([NVCC,'-arch=sm_90','-cubin',f'src/{n}.cu','-o',f'obj/{n}.cubin'],capture_output=True,text=True)
    return (s,n,la if r.returncode==0 else None,r.stderr)
subprocess.run(['cargo','build','-q','--release','-p','warpwright-stencil','--example','schedule_stencil'],cwd=ROOT,check=True)
HERE=os.path.dirname(os.path.abspath(__file__))
os.makedirs(sys.argv[1],exist_ok=True)
for f in ['runner.cu','run.sh']: shutil.copy(os.path.join(HERE,f),sys.argv[1])
os.chdir(sys.argv[1])
os.makedirs('src',exist_ok=True);os.makedirs('obj',exist_ok=True)
jobs=[(s,v) for s in SZ for v in variants(s)]
print(len(jobs))
M={s:[None,[]] for s in SZ}
with ThreadPoolExecutor() as p:
    for s,n,la,e in p.map(one,jobs):
        if la is None: print('FAILED',n,e[:300]); continue
        L=la.splitlines()
        M[s][0]=[x for x in L if x.split()[0] in('array','scalar','size')]
        M[s][1].append(f"variant {s} {n[len(s)+1:]} obj/{n}.cubin")
        M[s][1]+=[re.sub(r'[\[\],]','',x) for x in L if x.startswith('kernel')]
        open(f'{s}.manifest','w').write('\n'.join(M[s][0]+M[s][1])+'\n')
