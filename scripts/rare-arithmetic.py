#!/usr/bin/env python3
"""PTX for arithmetic that ordinary CUDA C++ seldom has in all its forms, one small kernel for each: conversions
of every width from general, uniform and constant sources, half precision with immediates, the uniform datapath,
atomics of floating-point numbers, wgmma with transposed and negated operands. Beside scripts/rare-instructions.py, for
the mining programs (docs/sass.md).

    scripts/rare-arithmetic.py DIR PTXAS [PATTERN]

writes DIR/sm_XX.ptx with the kernels that ptxas accepts, and DIR/sm_XX.LEVEL.cubin at -O0, -O1 and -O3;
with a pattern only the kernels whose text has it."""

import bisect
import os
import re
import subprocess
import sys


def head(arch):
    return f".version 8.8\n.target {arch}\n.address_size 64\n"


def entry(name, body):
    return f""".visible .entry {name}(.param .u64 p, .param .u64 d, .param .u64 e,
                    .param .u32 i, .param .u32 j, .param .u32 k) {{
 .reg .b64 %d<40>; .reg .b32 %r<300>; .reg .b16 %h<20>; .reg .pred %p<6>; .reg .f32 %f<20>; .reg .f64 %g<20>;
 ld.param.u64 %d1,[p]; ld.param.u64 %d2,[d]; ld.param.u64 %d3,[e];
 ld.param.u32 %r1,[i]; ld.param.u32 %r2,[j]; ld.param.u32 %r3,[k];
 cvta.to.global.u64 %d1,%d1; setp.ne.u32 %p1,%r2,0; mov.u32 %r9,%tid.x;
 mul.wide.u32 %d9,%r9,8; add.u64 %d8,%d1,%d9;
 {body}
 ret;
}}
"""


KERNELS = []
regs={'u8':('h','u8'),'s8':('h','s8'),'u16':('h','u16'),'s16':('h','s16'),'u32':('r','u32'),'s32':('r','s32'),'u64':('d','u64'),'s64':('d','s64'),'f16':('h','b16'),'bf16':('h','b16'),'f32':('f','f32'),'f64':('g','f64')}
def st(ty,n):
    r=regs[ty][0]; w={'h':'b16','r':'b32','d':'b64','f':'f32','g':'f64'}[r]
    return f'st.global.{w} [%d8],%{r}{n};'
def ld(ty,n,uniform):
    r=regs[ty][0]
    w={'u8':'u8','s8':'s8'}.get(ty,{'h':'b16','r':'b32','d':'b64','f':'f32','g':'f64'}[r])
    if uniform: # from parameters: uniform
        return {'h':f'cvt.u16.u32 %h{n},%r3;','r':f'mov.b32 %r{n},%r3;','d':f'mov.b64 %d{n},%d3;','f':f'mov.b32 %f{n},%r3;','g':f'mov.b64 %g{n},%d3;'}[r]
    return f'ld.global.{w} %{r}{n},[%d8];'
ints=['u8','s8','u16','s16','u32','s32','u64','s64']
fl=['f16','f32','f64','bf16']
for u in (0,1):
  for a in ints:
    for b in fl:
      for m in ('rn','rz','rm','rp'):
        KERNELS.append(f'{ld(a,10,u)} cvt.{m}.{b}.{a} %{regs[b][0]}11,%{regs[a][0]}10; {st(b,11)}')
        KERNELS.append(f'{ld(b,10,u)} cvt.{m}i.{a}.{b} %{regs[a][0]}11,%{regs[b][0]}10; {st(a,11)}')
  for a in fl:
    for b in fl:
      for m in ('','.rn','.rz','.rm','.rp','.rni','.rzi','.rmi','.rpi'):
        for ftz in ('','.ftz'):
          KERNELS.append(f'{ld(a,10,u)} cvt{m}{ftz}.{b}.{a} %{regs[b][0]}11,%{regs[a][0]}10; {st(b,11)}')
# half precision
for u in (0,1):
  L=('ld.global.b32 %r10,[%d8]; ld.global.b32 %r11,[%d8+8]; ld.global.b32 %r12,[%d8+16];' if not u else 'mov.b32 %r10,%r1; mov.b32 %r11,%r2; mov.b32 %r12,%r3;')
  LH=('ld.global.b16 %h10,[%d8]; ld.global.b16 %h11,[%d8+8]; ld.global.b16 %h12,[%d8+16];' if not u else 'cvt.u16.u32 %h10,%r1; cvt.u16.u32 %h11,%r2; cvt.u16.u32 %h12,%r3;')
  for ty,one in (('f16x2','0x3c003c00'),('f16x2','0x3c004000'),('bf16x2','0x3f803f80'),('bf16x2','0x40003f80')):
    for op in ('add','sub','mul','min','max','add.sat','mul.sat','add.ftz','fma'):
      for imm in (0,1,2,3):
        a='%r10' ; b=one if imm==1 else '%r11'; 
        pre=f'mov.b32 %r14,{one};'
        if op=='fma':
          ops={0:'%r10,%r11,%r12',1:'%r10,%r14,%r12',2:'%r10,%r11,%r14',3:'%r10,%r14,%r14'}[imm]
          KERNELS.append(f'{L} {pre} fma.rn.{ty} %r13,{ops}; st.global.b32 [%d8],%r13;')
          KERNELS.append(f'{L} {pre} fma.rn.relu.{ty} %r13,{ops}; st.global.b32 [%d8],%r13;')
        else:
          o,*m=op.split('.')
          ops={0:'%r10,%r11',1:'%r10,%r14',2:'%r14,%r11',3:'%r15,%r14'}[imm]
          sw='prmt.b32 %r15,%r10,%r10,0x3232;' if imm==3 else ''
          KERNELS.append(f'{L} {pre} {sw} {o}{"".join("."+x for x in m)}.{ty} %r13,{ops}; st.global.b32 [%d8],%r13;')
  for ty,one in (('f16','0x3c00'),('bf16','0x3f80')):
    for op in ('add','sub','mul','min','max','add.sat','mul.sat','add.ftz'):
      o,*m=op.split('.')
      for ops in ('%h10,%h11','%h10,%h14'):
        KERNELS.append(f'{LH} mov.b16 %h14,{one}; {o}{"".join("."+x for x in m)}.{ty} %h13,{ops}; st.global.b16 [%d8],%h13;')
        KERNELS.append(f'{L} mov.b16 %h14,{one}; mov.b32 {{%h10,%h11}},%r10; {o}{"".join("."+x for x in m)}.{ty} %h13,{ops.replace("%h10","%h11")}; st.global.b16 [%d8],%h13;')
    for ops in ('%h10,%h11,%h12','%h10,%h14,%h12','%h10,%h11,%h14'):
      KERNELS.append(f'{LH} mov.b16 %h14,{one}; fma.rn.{ty} %h13,{ops}; st.global.b16 [%d8],%h13;')
    for c in ('lt','ge','eq','ne','gtu','num','nan'):
      KERNELS.append(f'{LH} mov.b16 %h14,{one}; setp.{c}.{ty} %p2,%h10,%h14; selp.b32 %r13,1,2,%p2; st.global.b32 [%d8],%r13;')
  for ty in ('f16x2','bf16x2'):
    for c in ('lt','ge','eq','ne','gtu'):
      for d in ('','0'):
        KERNELS.append(f'{L} setp.{c}.{ty} %p2|%p3,%r10,%r11; selp.b32 %r13,1,2,%p2; selp.b32 %r14,3,4,%p3; xor.b32 %r13,%r13,%r14; st.global.b32 [%d8],%r13;')
        KERNELS.append(f'{L} set.{c}.{ty}.{ty} %r13,%r10,%r11; st.global.b32 [%d8],%r13;')
    for op in ('neg','abs','ex2.approx','tanh.approx','ex2.approx.ftz'):
      KERNELS.append(f'{L} {op}.{ty} %r13,%r10; st.global.b32 [%d8],%r13;')
# uniform datapath: everything from parameters, stored once
UO=[]
for op in ('add.s32','sub.s32','mul.lo.s32','mul.hi.s32','mul.hi.u32','min.s32','max.s32','min.u32','max.u32','and.b32','or.b32','xor.b32','shl.b32','shr.u32','shr.s32','div.u32','rem.u32','div.s32'):
    UO.append(f'{op} %r13,%r1,%r2;')
    UO.append(f'{op} %r13,%r1,7;')
for op in ('popc.b32','clz.b32','bfind.u32','bfind.s32','bfind.shiftamt.u32','brev.b32','not.b32','neg.s32','abs.s32','cnot.b32'):
    UO.append(f'{op} %r13,%r1;')
for op in ('bfe.u32','bfe.s32'):
    for o in ('%r1,%r2,%r3','%r1,4,8','%r1,0,5','%r1,0,%r2','%r1,%r2,8'): UO.append(f'{op} %r13,{o};')
for o in ('%r1,%r2,4,8','%r1,%r2,%r3,8','%r1,%r2,%r3,%r1'): UO.append(f'bfi.b32 %r13,{o};')
for op in ('szext.clamp.s32','szext.wrap.s32','szext.clamp.u32','szext.wrap.u32','bmsk.clamp.b32','bmsk.wrap.b32'):
    for o in ('%r1,%r2','%r1,5'): UO.append(f'{op} %r13,{o};')
for m in ('','.f4e','.b4e','.rc8','.ecl','.ecr','.rc16'): UO.append(f'prmt.b32{m} %r13,%r1,%r2,%r3;')
for d in ('shf.l.wrap.b32','shf.r.wrap.b32','shf.l.clamp.b32','shf.r.clamp.b32'):
    for o in ('%r1,%r2,%r3','%r1,%r2,7'): UO.append(f'{d} %r13,{o};')
for o in ('0x96','0x1e','0xe8','0xca'): UO.append(f'lop3.b32 %r13,%r1,%r2,%r3,{o};')
for c in ('lt','ge','eq','ne'):
    for t in ('s32','u32'):
        UO.append(f'setp.{c}.{t} %p2,%r1,%r2; selp.b32 %r13,%r3,5,%p2;')
        UO.append(f'setp.{c}.and.{t} %p2|%p3,%r1,%r2,%p1; selp.b32 %r13,%r3,5,%p2; @%p3 add.u32 %r13,%r13,1;')
for op in ('cvt.s32.s8 %r13,%r1;','cvt.u32.u8 %r13,%r1;','cvt.s32.s16 %r13,%r1;','cvt.u32.u16 %r13,%r1;','cvt.sat.s8.s32 %r13,%r1;','mad.lo.s32 %r13,%r1,%r2,%r3;','mad.hi.u32 %r13,%r1,%r2,%r3;','sad.s32 %r13,%r1,%r2,%r3;','vabsdiff.s32.s32.s32 %r13,%r1,%r2;','dp4a.u32.u32 %r13,%r1,%r2,%r3;','dp2a.lo.u32.u32 %r13,%r1,%r2,%r3;','activemask.b32 %r13;','vote.sync.ballot.b32 %r13,%p1,-1;','redux.sync.add.s32 %r13,%r1,-1;','mov.u32 %r13,%clock;','mov.u32 %r13,%ctaid.x;'):
    UO.append(op)
for o in UO:
    KERNELS.append(f'{o} st.global.b32 [%d8],%r13;')
    KERNELS.append(f'{o} st.global.b32 [%d1],%r13;')
    KERNELS.append(f'bra.uni L; L: {o} mul.wide.u32 %d20,%r13,4; add.u64 %d20,%d20,%d8; st.global.b32 [%d20],%r9;')
    KERNELS.append(f'{o} mov.u32 %r20,0; LP: add.u32 %r20,%r20,%r13; st.global.b32 [%d8],%r20; setp.lt.u32 %p4,%r20,%r2; @%p4 bra.uni LP;')
for op in ('add.s64','sub.s64','mul.lo.s64','mul.hi.u64','mul.hi.s64','min.s64','max.u64','and.b64','xor.b64'):
    KERNELS.append(f'{op} %d13,%d2,%d3; st.global.b64 [%d8],%d13;')
for op in ('shl.b64','shr.u64','shr.s64'):
    KERNELS.append(f'{op} %d13,%d2,%r2; st.global.b64 [%d8],%d13;'); KERNELS.append(f'{op} %d13,%d2,9; st.global.b64 [%d8],%d13;')
for op in ('popc.b64 %r13,%d2;','clz.b64 %r13,%d2;','bfind.u64 %r13,%d2;','mul.wide.s32 %d13,%r1,%r2; cvt.u32.u64 %r13,%d13;'):
    KERNELS.append(f'{op} st.global.b32 [%d8],%r13;')
for t in ('u64','s64'):
    for c in ('lt','ge','eq','ne'):
        KERNELS.append(f'setp.{c}.{t} %p2,%d2,%d3; selp.b32 %r13,%r3,5,%p2; st.global.b32 [%d8],%r13;')
UF=['add.f32','mul.f32','sub.f32','min.f32','max.f32','add.rz.f32','mul.ftz.f32','div.approx.f32']
for o in UF: KERNELS.append(f'mov.b32 %f1,%r1; mov.b32 %f2,%r2; {o} %f3,%f1,%f2; st.global.f32 [%d8],%f3;')
for o in ('rcp.approx.f32','sqrt.approx.f32','rsqrt.approx.f32','sin.approx.f32','cos.approx.f32','lg2.approx.f32','ex2.approx.f32','tanh.approx.f32'):
    KERNELS.append(f'mov.b32 %f1,%r1; {o} %f3,%f1; st.global.f32 [%d8],%f3;'); KERNELS.append(f'ld.global.f32 %f1,[%d8]; {o} %f3,%f1; st.global.f32 [%d8],%f3;')
for o in ('add.f64','mul.f64','min.f64','max.f64'): KERNELS.append(f'mov.b64 %g1,%d2; mov.b64 %g2,%d3; {o} %g3,%g1,%g2; st.global.f64 [%d8],%g3;')
KERNELS.append('mov.b64 %g1,%d2; mov.b64 %g2,%d3; fma.rn.f64 %g3,%g1,%g2,%g1; st.global.f64 [%d8],%g3;')
KERNELS.append('mov.b32 %f1,%r1; mov.b32 %f2,%r2; fma.rn.f32 %f3,%f1,%f2,%f1; st.global.f32 [%d8],%f3;')
KERNELS.append('rcp.approx.ftz.f64 %g3,%g3; st.global.f64 [%d8],%g3;')
# atomics of floating-point numbers: the result used or not, global and generic, one address for all threads or one for each
FLOATS = {'f32': 'f', 'f64': 'g', 'noftz.f16': 'h', 'noftz.bf16': 'h', 'noftz.f16x2': 'r', 'noftz.bf16x2': 'r'}
LOADS = {'f': 'f32', 'g': 'f64', 'h': 'b16', 'r': 'b32'}
for ty, r in FLOATS.items():
  for space in ('.global', ''):
    for scope in ('cta', 'gpu', 'sys'):
      for base in ('%d1', '%d8'):
        for offset in (0, 8, 264):
          load = f'ld.global.{LOADS[r]} %{r}10,[%d8+512];'
          KERNELS.append(f'{load} red.relaxed.{scope}{space}.add.{ty} [{base}+{offset}],%{r}10;')
          KERNELS.append(f'{load} atom.relaxed.{scope}{space}.add.{ty} %{r}11,[{base}+{offset}],%{r}10; st.global.{LOADS[r]} [%d8],%{r}11;')
for ty, r, counts in (('f32.add', 'f', (2, 4)), ('f16x2.add.noftz', 'r', (2, 4)), ('bf16x2.add.noftz', 'r', (2, 4)),
                      ('f16.add.noftz', 'h', (2, 4, 8)), ('bf16.add.noftz', 'h', (2, 4, 8))):
  for count in counts:
    values = lambda first: ','.join(f'%{r}{first+i}' for i in range(count))
    loads = ' '.join(f'ld.global.{LOADS[r]} %{r}{2+i},[%d8+{512+8*i}];' for i in range(count))
    stores = ' '.join(f'st.global.{LOADS[r]} [%d8+{8*i}],%{r}{10+i};' for i in range(count))
    for scope in ('cta', 'gpu', 'sys'):
      for base in ('%d1', '%d8'):
        for offset in (0, 16, 256):
          KERNELS.append(f'{loads} red.relaxed.{scope}.global.v{count}.{ty} [{base}+{offset}],{{{values(2)}}};')
          KERNELS.append(f'{loads} atom.relaxed.{scope}.global.v{count}.{ty} {{{values(10)}}},[{base}+{offset}],{{{values(2)}}}; {stores}')
# wgmma variants
W=[]
for n in (8,16,32,64,128,256):
  for ty,k,d in (('f16.f16.f16',16,1),('f32.f16.f16',16,0),('f32.bf16.bf16',16,0),('f32.tf32.tf32',8,0)):
    nr=n//4 if d else n//2
    D=','.join(('%%r%d' if d else '%%x%d')%(20+i) for i in range(nr))
    ini=' '.join(('ld.global.b32 %%r%d,[%%d1+%d];' if d else 'ld.global.f32 %%x%d,[%%d1+%d];')%(20+i,4*i) for i in range(nr))
    out=' '.join(('st.global.b32 [%%d1+%d],%%r%d;' if d else 'st.global.f32 [%%d1+%d],%%x%d;')%(4*i,20+i) for i in range(nr))
    tr=[(a,b) for a in (0,1) for b in (0,1)] if '16' in ty.split('.')[1] else [None]
    for t in tr:
      for s in ((1,1),(-1,1),(1,-1),(-1,-1)):
        for sd in ('%p1','1','0'):
          if n not in (8,64) and (s!=(1,1) or sd!='%p1'): continue
          T=f',{s[0]},{s[1]}'+(f',{t[0]},{t[1]}' if t else '')
          TR=f',{s[0]},{s[1]}'+(f',{t[1]}' if t else '')
          pd='.reg .f32 %x<200>; ' if not d else ''
          b='wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n%dk%d.%s {%s},%s,%%d3,%s%s; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; '
          sdv={'%p1':'%p1','1':'%p5','0':'%p4'}[sd]
          sp={'%p1':'','1':'setp.eq.u32 %p5,0,0; ','0':'setp.ne.u32 %p4,0,0; '}[sd]
          W.append(pd+sp+ini+b%(n,k,ty,D,'%d2',sdv,T)+out)
          if not t or t[0]==0: W.append(pd+sp+'mov.u32 %r4,%r9; '+ini+b%(n,k,ty,D,'{%r1,%r2,%r3,%r4}',sdv,TR)+out)

ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder, ptxas, *pattern = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for arch in ARCHITECTURES:
        bodies = KERNELS + (W if arch == "sm_90a" else [])
        bodies = [body for body in bodies if all(re.search(only, body) for only in pattern)]
        count = len(bodies)
        path = os.path.join(folder, arch + ".ptx")
        while True:
            text, starts = head(arch), []
            for number, body in enumerate(bodies):
                starts.append(text.count("\n") + 1)
                text += entry(f"k{number}", body)
            with open(path, "w") as file:
                file.write(text)
            out = os.path.join(folder, arch + ".O3.cubin")
            done = subprocess.run([ptxas, f"-arch={arch}", path, "-o", out], capture_output=True, text=True)
            # Kernels that this architecture has no instruction for are left out.
            lines = map(int, re.findall(r"line (\d+)", done.stderr))
            wrong = {bisect.bisect_right(starts, line) - 1 for line in lines}
            if done.returncode == 0 or not wrong:
                break
            bodies = [body for number, body in enumerate(bodies) if number not in wrong]
        print(f"{arch}: {len(bodies)} of {count} kernels")
        for level in ("O0", "O1"):
            out = os.path.join(folder, f"{arch}.{level}.cubin")
            subprocess.run([ptxas, f"-arch={arch}", f"-{level}", path, "-o", out], capture_output=True)


main()
