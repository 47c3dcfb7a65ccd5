#!/usr/bin/env python3
"""PTX for instructions that ordinary CUDA C++ seldom reaches, one small kernel for each: tensor memory and its
matrix units (sm_100a), TMA, barriers in memory, clusters, multimem, wgmma. The mining programs need one
instance of an instruction to derive a table from (docs/sass.md); what the kernels compute means nothing.

    scripts/rare-instructions.py DIR PTXAS...

writes DIR/sm_XX.ptx with all kernels that the first ptxas accepts, and DIR/*.cubin: by each ptxas, at -O0, -O1,
-O3, and at -O0 with debug information."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

PRELUDE = """ld.param.u64 %d1,[p]; ld.param.u64 %d2,[d]; ld.param.u64 %d3,[e];
 ld.param.u32 %r1,[i]; ld.param.u32 %r2,[j]; ld.param.u32 %r3,[k];
 cvta.to.global.u64 %d1,%d1; setp.ne.u32 %p1,%r2,0; mov.u32 %r4,s; mov.u32 %r5,mb;
 cvt.u16.u32 %h1,%r3; mov.b64 %d4,{%r2,%r3};
"""


def entry(name, body):
    return f""".visible .entry {name}(.param .u64 p, .param .u64 d, .param .u64 e, .param .u32 i,
                    .param .u32 j, .param .u32 k, .param .align 64 .b8 m[128]) {{
 .reg .b64 %d<16>; .reg .b32 %r<300>; .reg .b16 %h<8>; .reg .pred %p<6>; .reg .f32 %f<16>; .reg .b128 %q<4>;
 .shared .align 128 .b8 s[4096]; .shared .align 8 .b64 mb;
 {PRELUDE} {body}
 ret;
}}
"""


def head(arch):
    return f".version 8.8\n.target {arch}\n.address_size 64\n"


def regs(first, count):
    return "{" + ",".join(f"%r{first + i}" for i in range(count)) + "}"


def dump(first, count):
    """Keeps all that was loaded alive."""
    mix = "".join(f"xor.b32 %r{first},%r{first},%r{first + i}; " for i in range(1, count))
    return f"{mix}st.global.u32 [%d1],%r{first};"


S100=[]
for sh,base in (('32x32b',1),('16x64b',1),('16x128b',2),('16x256b',4)):
    n=1
    while n*base<=128:
        for pk in ('','.pack::16b'):
            S100.append('tcgen05.ld.sync.aligned.%s.x%d%s.b32 %s,[%%r1]; tcgen05.wait::ld.sync.aligned; %s'%(sh,n,pk,regs(20,n*base),dump(20,n*base)))
        for pk in ('','.unpack::16b'):
            ini=' '.join('ld.global.u32 %%r%d,[%%d1+%d];'%(20+i,4*i) for i in range(n*base))
            S100.append('%s tcgen05.st.sync.aligned.%s.x%d%s.b32 [%%r1],%s; tcgen05.wait::st.sync.aligned;'%(ini,sh,n,pk,regs(20,n*base)))
        n*=2
for n in (1,2,4,8,16,32,64,128):
    S100.append('tcgen05.ld.sync.aligned.16x32bx2.x%d.b32 %s,[%%r1],16; tcgen05.wait::ld.sync.aligned; %s'%(n,regs(20,n),dump(20,n)))
    ini=' '.join('ld.global.u32 %%r%d,[%%d1+%d];'%(20+i,4*i) for i in range(n))
    S100.append('%s tcgen05.st.sync.aligned.16x32bx2.x%d.b32 [%%r1],16,%s; tcgen05.wait::st.sync.aligned;'%(ini,n,regs(20,n)))
for cg in (1,2):
    c='.cta_group::%d'%cg
    for kind in ('f16','tf32','f8f6f4','i8'):
        for a in ('%d2','[%r3]'):
            S100.append('tcgen05.mma%s.kind::%s [%%r1],%s,%%d3,%%r2,%%p1;'%(c,kind,a))
            S100.append('tcgen05.mma.sp%s.kind::%s [%%r1],%s,%%d3,[%%r2],%%r3,%%p1;'%(c,kind,a))
            if kind in('f16','tf32'): S100.append('tcgen05.mma%s.kind::%s [%%r1],%s,%%d3,%%r2,%%p1,5;'%(c,kind,a))
            S100.append('tcgen05.mma%s.kind::%s.collector::a::fill [%%r1],%s,%%d3,%%r2,%%p1;'%(c,kind,a))
            S100.append('tcgen05.mma%s.kind::%s.collector::a::lastuse [%%r1],%s,%%d3,%%r2,%%p1;'%(c,kind,a))
            n=4 if cg==1 else 8
            S100.append('tcgen05.mma%s.kind::%s [%%r1],%s,%%d3,%%r2,{%s},%%p1;'%(c,kind,a,','.join(['%r3']*n)))
            if cg==1:
                S100.append('tcgen05.mma.ws%s.kind::%s [%%r1],%s,%%d3,%%r2,%%p1;'%(c,kind,a))
                S100.append('tcgen05.mma.ws%s.kind::%s.collector::b1::fill [%%r1],%s,%%d3,%%r2,%%p1,%%d4;'%(c,kind,a))
                S100.append('tcgen05.mma.ws.sp%s.kind::%s [%%r1],%s,%%d3,[%%r2],%%r3,%%p1;'%(c,kind,a))
    for kind,sv in (('mxf8f6f4',''),('mxf8f6f4','.scale_vec::1X'),('mxf4',''),('mxf4','.scale_vec::2X'),('mxf4nvf4','.scale_vec::2X'),('mxf4nvf4','.scale_vec::4X')):
        for a in ('%d2','[%r3]'):
            S100.append('tcgen05.mma%s.kind::%s.block_scale%s [%%r1],%s,%%d3,%%r2,[%%r1],[%%r2],%%p1;'%(c,kind,sv,a))
            S100.append('tcgen05.mma.sp%s.kind::%s.block_scale%s [%%r1],%s,%%d3,[%%r2],%%r3,[%%r1],[%%r2],%%p1;'%(c,kind,sv,a))
    S100.append('tcgen05.commit%s.mbarrier::arrive::one.b64 [%%d2];'%c)
    S100.append('tcgen05.commit%s.mbarrier::arrive::one.shared::cluster.b64 [%%r5];'%c)
    S100.append('tcgen05.commit%s.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%%r5],%%h1;'%c)
    for sh in ('128x256b','4x256b','128x128b','64x128b.warpx2::02_13','64x128b.warpx2::01_23','32x128b.warpx4'):
        for f in ('','.b8x16.b6x16_p32','.b8x16.b4x16_p64'):
            S100.append('tcgen05.cp%s.%s%s [%%r1],%%d2;'%(c,sh,f))
    S100.append('tcgen05.shift%s.down [%%r1];'%c)
    S100.append('tcgen05.alloc%s.sync.aligned.shared::cta.b32 [s],64; tcgen05.relinquish_alloc_permit%s.sync.aligned;'%(c,c))
    S100.append('tcgen05.alloc%s.sync.aligned.shared::cta.b32 [s],%%r2; '%c)
    S100.append('tcgen05.dealloc%s.sync.aligned.b32 %%r1,64;'%c)
    S100.append('tcgen05.dealloc%s.sync.aligned.b32 %%r1,%%r2;'%c)
S100+=['tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;']
# sm_90: TMA, multimem, cluster
S90=[]
for dim in range(1,6):
    co='{'+','.join('%%r%d'%(1+i%3) for i in range(dim))+'}'
    modes=['']
    for mode in modes:
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r4],[%%d1,%s],[%%r5];'%(dim,co))
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%%r4],[%%d1,%s],[%%r5],%%h1;'%(dim,co))
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%%r4],[%%d1,%s],[%%r5],%%d3;'%(dim,co))
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%%r4],[%%d1,%s],[%%r5],%%h1,%%d3;'%(dim,co))
        S90.append('cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group [%%d1,%s],[%%r4]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;'%(dim,co))
        S90.append('cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group.L2::cache_hint [%%d1,%s],[%%r4],%%d3; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1;'%(dim,co))
        S90.append('cp.async.bulk.prefetch.tensor.%dd.L2.global.tile [%%d1,%s];'%(dim,co))
        S90.append('cp.async.bulk.prefetch.tensor.%dd.L2.global.tile.L2::cache_hint [%%d1,%s],%%d3;'%(dim,co))
        for op in('add','min','max','inc','dec','and','or','xor'):
            S90.append('cp.reduce.async.bulk.tensor.%dd.global.shared::cta.%s.tile.bulk_group [%%d1,%s],[%%r4];'%(dim,op,co))
    if dim>=3:
        off='{'+','.join(['%h1']*(dim-2))+'}'
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%%r4],[%%d1,%s],[%%r5],%s;'%(dim,co,off))
        S90.append('cp.async.bulk.tensor.%dd.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%%r4],[%%d1,%s],[%%r5],%s,%%h1,%%d3;'%(dim,co,off))
        S90.append('cp.async.bulk.tensor.%dd.global.shared::cta.im2col_no_offs.bulk_group [%%d1,%s],[%%r4];'%(dim,co))
        S90.append('cp.async.bulk.prefetch.tensor.%dd.L2.global.im2col [%%d1,%s],%s;'%(dim,co,off))
S90+=['cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4],[%d1],%r1,[%r5];',
'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4],[%d1],%r1,[%r5],%h1;',
'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r4],[%d1],%r1,[%r5],%d3;',
'cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4],[%r2],%r1,[%r5];',
'cp.async.bulk.global.shared::cta.bulk_group [%d1],[%r4],%r1; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;',
'cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d1],[%r4],%r1,%d3; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;',
'cp.async.bulk.prefetch.L2.global [%d1],%r1;','cp.async.bulk.prefetch.L2.global.L2::cache_hint [%d1],%r1,%d3;',
'prefetch.tensormap [%d1];','prefetch.param.tensormap [m];',
'fence.proxy.async; fence.proxy.async.shared::cta; fence.proxy.async.global;','fence.proxy.tensormap::generic.release.gpu;','fence.proxy.tensormap::generic.acquire.gpu [%d1],128;',
'tensormap.replace.tile.global_address.global.b1024.b64 [%d1],%d2;','tensormap.replace.tile.rank.shared::cta.b1024.b32 [s],1;','tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [s],1,%r1;',
'tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1],[s],128;']
for ty,ops in(('u32',('add','min','max','inc','dec')),('s32',('add','min','max')),('u64',('add','min','max')),('s64',('min','max')),('b32',('and','or','xor')),('b64',('and','or','xor')),('f32',('add',)),('f64',('add',)),('f16',('add','min','max')),('bf16',('add','min','max'))):
    for op in ops:
        nz='.noftz' if ty in('f16','bf16') and op=='add' else ''
        S90.append('cp.reduce.async.bulk.global.shared::cta.bulk_group.%s%s.%s [%%d1],[%%r4],%%r1;'%(op,nz,ty))
        if ty in('u32','s32','u64','b32'):
            S90.append('cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s.%s [%%r4],[%%r2],%%r1,[%%r5];'%(op,ty))
        if ty in('u32','s32','u64','b32','b64'):
            w=ty[1:]
            r='%r10' if w=='32' else '%d5'
            o='%r1' if w=='32' else '%d3'
            S90.append('red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.%s.%s [%%r4],%s,[%%r5];'%(op,ty,o))
for v,r in (('b32','%r1'),('b64','%d2'),('v2.b32','{%r1,%r2}'),('v4.b32','{%r1,%r2,%r3,%r1}'),('v2.b64','{%d2,%d3}')):
    S90.append('st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.%s [%%r4],%s,[%%r5];'%(v,r))
for op,ty in (('add','u32'),('min','u32'),('max','s32'),('and','b32'),('or','b32'),('xor','b32'),('add','u64'),('add','f32'),('add','f16x2'),('min','f16x2'),('max','bf16x2'),('add','bf16x2'),('add','f64')):
    wide=ty in('u64','f64')
    fl={'f32':'%f1','f64':'%d5','u64':'%d5'}.get(ty,'%r10')
    src={'f32':'%f2','f64':'%d3','u64':'%d3'}.get(ty,'%r1')
    st={'f32':'st.global.f32 [%d1],%f1;','f64':'st.global.u64 [%d1],%d5;','u64':'st.global.u64 [%d1],%d5;'}.get(ty,'st.global.u32 [%d1],%r10;')
    S90.append('multimem.ld_reduce.relaxed.sys.global.%s.%s %s,[%%d1]; %s'%(op,ty,fl,st))
    S90.append('multimem.red.relaxed.sys.global.%s.%s [%%d1],%s;'%(op,ty,src))
S90.append('multimem.st.relaxed.sys.global.u32 [%d1],%r1;')
for v,t,n in (('v4','f32',4),('v2','f32',2)):
    S90.append('multimem.ld_reduce.relaxed.sys.global.add.%s.%s {%s},[%%d1]; st.global.f32 [%%d1],%%f1;'%(v,t,','.join('%%f%d'%(i+1) for i in range(n))))
for t in('f16x2','bf16x2'):
    S90.append('multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.%s {%%r10,%%r11,%%r12,%%r13},[%%d1]; st.global.u32 [%%d1],%%r13;'%t)
S90+=['barrier.cluster.arrive; barrier.cluster.wait;','barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;','barrier.cluster.arrive.relaxed;',
'mapa.shared::cluster.u32 %r10,%r4,%r1; st.global.u32 [%d1],%r10;','getctarank.shared::cluster.u32 %r10,%r4; st.global.u32 [%d1],%r10;',
'mapa.u64 %d5,%d2,%r1; st.global.u64 [%d1],%d5;',
'ld.shared::cluster.u32 %r10,[%r1]; st.shared::cluster.u32 [%r1+4],%r10;','atom.shared::cluster.add.u32 %r10,[%r1],%r2; st.global.u32 [%d1],%r10;','atom.shared::cluster.cas.b64 %d5,[%r1],%d2,%d3; st.global.u64 [%d1],%d5;','red.shared::cluster.add.u32 [%r1],%r2;',
'mbarrier.init.shared.b64 [%r5],%r1; mbarrier.inval.shared.b64 [%r5];','mbarrier.arrive.shared.b64 %d5,[%r5]; st.global.u64 [%d1],%d5;','mbarrier.arrive.shared.b64 %d5,[%r5],%r1; st.global.u64 [%d1],%d5;','mbarrier.arrive.expect_tx.shared.b64 %d5,[%r5],%r1; st.global.u64 [%d1],%d5;','mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%r1];','mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%r1],%r2;','mbarrier.expect_tx.relaxed.cta.shared.b64 [%r5],%r1;','mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r5],%r1;',
'mbarrier.arrive_drop.shared.b64 %d5,[%r5]; st.global.u64 [%d1],%d5;','mbarrier.arrive.noComplete.shared.b64 %d5,[%r5],%r1; st.global.u64 [%d1],%d5;',
'mbarrier.test_wait.shared.b64 %p2,[%r5],%d2; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;','mbarrier.try_wait.shared.b64 %p2,[%r5],%d2; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;','mbarrier.try_wait.parity.shared.b64 %p2,[%r5],%r1,%r2; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;','mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2,[%r5],%r1; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;','mbarrier.test_wait.parity.shared.b64 %p2,[%r5],%r1; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;','mbarrier.pending_count.b64 %r10,%d2; st.global.u32 [%d1],%r10;',
'cp.async.mbarrier.arrive.shared.b64 [%r5];','cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];',
'setmaxnreg.inc.sync.aligned.u32 240;','setmaxnreg.dec.sync.aligned.u32 40;','elect.sync %r10|%p2,0xffffffff; selp.u32 %r11,1,0,%p2; add.u32 %r10,%r10,%r11; st.global.u32 [%d1],%r10;','griddepcontrol.launch_dependents;','griddepcontrol.wait;',
'clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r4],[%r5];','clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%r4],[%r5];',
'mov.b128 %q1,{%d2,%d3}; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2,%q1; selp.u32 %r10,1,0,%p2; st.global.u32 [%d1],%r10;',
'mov.b128 %q1,{%d2,%d3}; clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10,%r11,%r12,%r13},%q1; st.global.u32 [%d1],%r10;',
'atom.global.exch.b128 %q1,[%d1],%q2; st.global.b128 [%d1],%q1;','atom.global.cas.b128 %q1,[%d1],%q2,%q3; st.global.b128 [%d1],%q1;']
for x in ('x1','x2','x4'):
    n=int(x[1])
    for tr in ('','.trans'):
        S90.append('ldmatrix.sync.aligned.m8n8.%s%s.shared.b16 %s,[%%r4]; %s'%(x,tr,regs(20,n),dump(20,n)))
        S90.append('stmatrix.sync.aligned.m8n8.%s%s.shared.b16 [%%r4],%s;'%(x,tr,'{'+','.join(['%r1','%r2','%r3','%r1'][:n])+'}'))
        S90.append('stmatrix.sync.aligned.m16n8.%s.trans.shared.b8 [%%r4],%s;'%(x,'{'+','.join(['%r1','%r2','%r3','%r1'][:n])+'}'))
    for f in ('b6x16_p32','b4x16_p64'):
        S90.append('ldmatrix.sync.aligned.m8n16.%s.shared.b8x16.%s %s,[%%r4]; %s'%(x,f,regs(20,n),dump(20,n)))
for x,n in(('x1',2),('x2',4)):
    S90.append('ldmatrix.sync.aligned.m16n16.%s.trans.shared.b8 %s,[%%r4]; %s'%(x,regs(20,n),dump(20,n)))
# wgmma shapes
W=[]
for n in (8,16,24,64,128,256):
  for ty,k,d in (('f16.f16',16,1),('f32.f16.f16',16,0),('f32.bf16.bf16',16,0),('f32.tf32.tf32',8,0),('f32.e4m3.e5m2',32,0),('f16.e4m3.e4m3',32,1),('s32.s8.u8',32,0),('s32.b1.b1.and.popc',256,0)):
    if ty=='f16.f16': ty='f16.f16.f16'
    if ty.startswith('s32') and n==24: pass
    nr=n//4 if d else n//2
    isf=not d and ty.startswith('f32')
    D=','.join('%%r%d'%(20+i) for i in range(nr))
    D2=D if not isf else D
    ini=' '.join('ld.global.u32 %%r%d,[%%d1+%d];'%(20+i,4*i) for i in range(nr))
    out=' '.join('st.global.u32 [%%d1+%d],%%r%d;'%(4*i,20+i) for i in range(nr))
    t=',1,1,0,0' if ('f16' in ty or 'bf16' in ty) and 'e4m3' not in ty else (',1,1' if not ty.startswith('s32') else '')
    t2=',-1,1,0' if ('f16' in ty or 'bf16' in ty) and 'e4m3' not in ty else (',1,1' if not ty.startswith('s32') else '')
    sat='.popc' if False else ''
    body='wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n%dk%d.%s {%s},%s,%%d3,%%p1%s; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; '
    if 'b1.b1' in ty: nm='s32.b1.b1.and.popc'
    W.append(ini+body%(n,k,ty,D,'%d2',t)+out)
    W.append(ini+body%(n,k,ty,D,'{%r1,%r2,%r3,%r4}',t2)+out)

SETS = {"sm_90a": S90 + W, "sm_100a": S100 + S90, "sm_120a": S90}


def accepts(ptxas, arch, folder, number, body):
    path = os.path.join(folder, f"try-{arch}-{number}")
    with open(path, "w") as file:
        file.write(head(arch) + entry("k", body))
    done = subprocess.run([ptxas, f"-arch={arch}", path, "-o", path + ".out"], capture_output=True)
    for left in (path, path + ".out"):
        if os.path.exists(left):
            os.remove(left)
    return done.returncode == 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, compilers = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for arch, bodies in SETS.items():
        with ThreadPoolExecutor() as pool:
            jobs = [pool.submit(accepts, compilers[0], arch, folder, i, b) for i, b in enumerate(bodies)]
            good = [body for body, job in zip(bodies, jobs) if job.result()]
        path = os.path.join(folder, arch + ".ptx")
        with open(path, "w") as file:
            file.write(head(arch) + "".join(entry(f"k{i}", body) for i, body in enumerate(good)))
        print(f"{arch}: {len(good)} of {len(bodies)} kernels")
        for number, ptxas in enumerate(compilers):
            for way in ("-O0", "-O1", "-O3", "-O0 -g"):
                name = f"{arch}.{number}.{way.replace(' -', '')[1:]}.cubin"
                out = os.path.join(folder, name)
                done = subprocess.run([ptxas, f"-arch={arch}", *way.split(), path, "-o", out], capture_output=True)
                if done.returncode != 0:
                    print(f"{ptxas} {way}: {done.stderr.decode().splitlines()[:1]}")


main()
