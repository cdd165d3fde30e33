#!/usr/bin/env bash
# spec/dist/slurm/cluster.sh: a SLURM cluster of two nodes in network namespaces of this machine.
#
#   cluster.sh up FOLDER        starts it; everything it needs and leaves is in FOLDER
#   cluster.sh in FOLDER CMD... runs a command on the machine of the controller (sbatch, srun, ...)
#   cluster.sh down FOLDER      ends every process of it, removes its namespaces
#
# Three namespaces: the controller with a bridge, and the nodes lta and ltb, each with a host name
# and a folder for temporary files of its own (pmix of two nodes would meet in one). Needs root.
# `up` ends it all by itself after LIMIT seconds.

hosts="ltc lta ltb" prefix=lt limit=${LIMIT:-100}
# shellcheck source=spec/dist/namespaces.sh
. "$(dirname "$0")/../namespaces.sh"

wire() { # namespaces, a bridge in the controller's, an address each
  local n=1 node
  ip netns add "${id}ltc"
  ip -n "${id}ltc" link add bridge type bridge
  ip -n "${id}ltc" addr add 10.78.0.1/24 dev bridge
  ip -n "${id}ltc" link set bridge up
  ip -n "${id}ltc" link set lo up
  for node in lta ltb; do
    n=$((n + 1))
    ip netns add "$id$node"
    ip -n "${id}ltc" link add "$node" type veth peer name eth0 netns "$id$node"
    ip -n "${id}ltc" link set "$node" master bridge up
    number "$node" "10.78.0.$n"
  done
  printf '127.0.0.1 localhost\n10.78.0.1 ltc\n10.78.0.2 lta\n10.78.0.3 ltb\n' >"$folder/hosts"
}

# Four GPUs a node, as far as SLURM looks at them: files of character devices.
gpus() {
  local k
  for k in 0 1 2 3; do mknod "$folder/gpu$k" c 1 3 2>/dev/null || return 0; done
  printf 'Name=gpu File=%s/gpu[0-3]\n' "$folder" >"$folder/gres.conf"
  gpus="Gres=gpu:4" types="GresTypes=gpu"
}

settings() {
  local gpus="" types=""
  gpus
  cat >"$folder/slurm.conf" <<END
ClusterName=ltrain
SlurmctldHost=ltc(10.78.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n.spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
TmpFS=$folder/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,requeue_delay=0
SlurmdParameters=config_overrides
JobRequeue=1
KillWait=5
ReturnToService=2
MessageTimeout=10
$types
NodeName=lta NodeAddr=10.78.0.2 CPUs=2 $gpus State=UNKNOWN
NodeName=ltb NodeAddr=10.78.0.3 CPUs=2 $gpus State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP
END
  printf 'CgroupPlugin=cgroup/v1\n' >"$folder/cgroup.conf"
}

up() {
  local node
  begin
  mkdir -p "$folder"/{state,tmp} "$folder"/{ltc,lta,ltb}.{tmp,spool}
  wire
  settings
  export SLURM_CONF=$folder/slurm.conf
  # Sessions of their own: they outlive the process group that this script runs in.
  on ltc setsid slurmctld -D </dev/null >"$folder/slurmctld.out" 2>&1 &
  for node in lta ltb; do
    on "$node" setsid slurmd -D -N "$node" </dev/null >"$folder/$node.out" 2>&1 &
  done
  for _ in $(seq 100); do
    if [ "$(on ltc sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; then return 0; fi
    sleep 0.1
  done
  echo "the nodes did not come up:" >&2
  tail -n 5 "$folder"/*.log "$folder"/*.out >&2
  return 1
}

case $verb in
  up) up ;;
  in) SLURM_CONF=$folder/slurm.conf on ltc "$@" ;;
  down) down ;;
esac
