"""placeholder"""
from __future__ import annotations
from dataclasses import dataclass
import torch, math
import torch.nn.functional as F
from torch import Tensor, nn
from oneofmany.problems import Batch, Problem
from oneofmany.networks.rule_pooling import RuleTables, max_over_rules, rule_tables, sum_rows

class Block(nn.Module):
    def __init__(self, kinds, width, hidden, pooled, gate='glu', agg='mean'):
        super().__init__()
        self.kinds=tuple(kinds); self.pooled=pooled; self.gate=gate; self.width=width; self.hidden=hidden
        self.into=nn.Linear(width, pooled+2*hidden)
        self.rules=nn.Parameter(torch.empty(len(self.kinds), 2*pooled, 2*hidden).uniform_(-1,1)/math.sqrt(2*pooled))
        self.out=nn.Linear(hidden,width)
    def forward(self, h, e, tables):
        x=h+e
        W,c=self.into.weight,self.into.bias
        u=F.linear(x,W[:self.pooled],c[:self.pooled])
        a=F.linear(x,W[self.pooled:],c[self.pooled:])
        pooled=torch.cat([max_over_rules(u,tables), sum_rows(u,tables.mean)],-1)
        R=self.rules.unbind(0)
        m=torch.cat([part@R[self.kinds.index(k)] for part,(k,i,j) in zip(pooled.split([j-i for k,i,j in tables.kinds]),tables.kinds)])
        a=a+sum_rows(m,tables.spread)
        if self.gate=='glu': g=F.glu(a,-1)
        else:
            x,y=a.chunk(2,-1); g=F.silu(x)*y
        return F.layer_norm(h+self.out(g),(self.width,))

class EquivariantNetwork(nn.Module):
    value_offset=0
    def __init__(self, problem, width=64, hidden=None, pooled=None, steps=16, gate='glu'):
        super().__init__()
        self.steps=steps
        self.embed=nn.Linear(3,width)
        self.block=Block(problem.kinds,width,hidden or width,pooled or width,gate)
        self.readout=nn.Linear(width,1,bias=False)
    def forward(self,batch,steps=None,noise=None):
        q=batch.query; p=batch.problem; V=p.values; B=len(q)
        t=rule_tables(p,q.device)
        given=q.t()[:,None,:]
        here=given==torch.arange(1,V+1,device=q.device)[None,:,None]
        other=(given>0)&~here
        noise=torch.zeros(B,p.choices) if noise is None else noise
        f=torch.stack([here.flatten(0,1).float(),other.flatten(0,1).float(),noise.t()],-1)
        e=self.embed(f)
        h=e; out=[]
        for _ in range(steps or self.steps):
            h=self.block(h,e,t)
            out.append(self.readout(h)[...,0])
        return torch.stack(out).view(-1,p.variables,V,B).permute(0,3,1,2)
