#!/bin/sh
# Starts a SLURM cluster of one node on this machine, without cgroups, for tests: one_node_slurm.sh FOLDER PORT
# Needs root and Debian's packages slurm-wlm and munge. SLURM_CONF=FOLDER/slurm.conf then selects the cluster;
# `kill $(cat FOLDER/*.pid)` ends it.
set -eu
folder=$(realpath "$1")
mkdir -p "$folder/state" "$folder/spool"
if ! munge -n > /dev/null 2>&1; then
    mkdir -p /run/munge
    chown munge: /run/munge
    runuser -u munge -- munged
fi
node=$(hostname -s)
cat > "$folder/slurm.conf" << END
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$2
SlurmdPort=$(($2 + 1))
SlurmUser=root
AuthType=auth/munge
# A job that is queued again starts after the old credential has expired.
AuthInfo=cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0
ReturnToService=2
KillWait=20
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$folder/slurm.conf"
slurmctld
slurmd
for _ in $(seq 60); do
    if sinfo --noheader --format=%T 2> /dev/null | grep -q idle; then
        exit 0
    fi
    sleep 0.5
done
echo "the node is not ready: see $folder/slurmctld.log and $folder/slurmd.log" >&2
exit 1
