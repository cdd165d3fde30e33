#!/usr/bin/env bash
# tools/cuda_check.sh: what of NVIDIA's CUDA is on this machine, and how to get the rest; installs
# nothing. ./dev cuda runs it.
set -u

toolkit="the CUDA Toolkit 12.8 or later (developer.nvidia.com/cuda-downloads, package cuda-toolkit)"
homes=("${CUDA_HOME:-}" /usr/local/cuda /opt/cuda)
lacking=0

say() { printf '%-10s %-5s %s\n' "$1" "$2" "$3"; }
lack() { say "$1" no "$2"; lacking=$((lacking + 1)); }

# The first file of the folders below CUDA's that matches; of what the loader knows.
below() { local home; for home in "${homes[@]}"; do ls "$home"/$1 2>/dev/null; done | head -1; }
loader() { /sbin/ldconfig -p 2>/dev/null | awk -v name="$1" '$1 ~ "^" name { print $NF; exit }'; }
python_lib() {
  ls "${VIRTUAL_ENV:-/nowhere}"/lib/python*/site-packages/nvidia/*/lib/$1* \
    /usr/lib/python3/dist-packages/nvidia/*/lib/$1* 2>/dev/null | head -1
}

nvcc=$(command -v nvcc || below bin/nvcc)
if [ -n "$nvcc" ]; then
  say nvcc yes "$nvcc, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
else
  lack nvcc "compiles the GPU's kernels when ltrain is built: $toolkit"
fi

header=$(below include/cuda_runtime_api.h)
if [ -n "$header" ]; then say headers yes "${header%/*}"; else lack headers "as nvcc"; fi

# As runtime/cuda/device_count.cu: nodes, else what the driver can make nodes of, else WSL.
gpus=$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)
[ "$gpus" -gt 0 ] || [ ! -x /usr/bin/nvidia-modprobe ] ||
  gpus=$(ls /proc/driver/nvidia/gpus 2>/dev/null | wc -l)
[ "$gpus" -gt 0 ] || [ ! -e /dev/dxg ] || gpus=1

driver=$(loader libcuda.so.1)
if [ "$gpus" -gt 0 ] && [ -n "$driver" ]; then
  version=$(sed -n 's/.*Kernel Module *\(for [^ ]* *\)\{0,1\}\([0-9.]*\).*/\2/p' \
    /proc/driver/nvidia/version 2>/dev/null | head -1)
  say driver yes "$gpus GPU(s), driver ${version:-of unknown version}"
elif [ "$gpus" -gt 0 ]; then
  lack driver "there is a GPU, but no libcuda.so.1: NVIDIA's driver (Debian: nvidia-driver)"
else
  lack driver "no /dev/nvidia0: no NVIDIA GPU, or its driver is not loaded"
fi

for library in "libcublasLt matrix products" "libcudnn convolutions"; do
  name=${library%% *}
  path=$(loader "$name.so")
  [ -n "$path" ] || path=$(below "lib64/$name.so.*")
  [ -n "$path" ] || path=$(python_lib "$name.so")
  if [ -n "$path" ]; then
    say "$name" yes "$path"
  else
    lack "$name" "${library#* } by own, slower kernels: comes with $toolkit, or with pip's \
nvidia-cublas and nvidia-cudnn"
  fi
done

path=$(loader libnccl.so)
[ -n "$path" ] || path=$(below "lib64/libnccl.so.2")
[ -n "$path" ] || path=$(python_lib libnccl.so)
if [ -n "$path" ]; then
  say libnccl yes "$path"
else
  lack libnccl "between several GPUs bytes go through the host: Debian's libnccl2 and libnccl-dev \
of NVIDIA, or pip's nvidia-nccl-cu13"
fi

[ $lacking -eq 0 ] && echo "everything is here: ./dev build builds the CUDA backend"
exit $((lacking > 0))
