#!/usr/bin/env bash
# The whole recipe in order, on a GPU: all.sh [MINUTES OF TRAINING THE GENERATOR].
# `all.sh --quick` tries every step on a CPU, in a copy of the checkout that it removes again.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python}
minutes=${1:-20}
train=() classifiers=() label=() heads=() jem=(--minutes 1.5) judge=() bench=()

if [ "$minutes" = --quick ]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
  mkdir -p "$copy/recipes/cifar10/work"
  cp recipes/cifar10/work/*.npz "$copy/recipes/cifar10/work/" 2>/dev/null || true
  cd "$copy"
  export LACE_HOME="$copy/home" PYTHONPATH="$copy/src"
  minutes=0.2
  train=(--channels 16 16 16 8 --batch 32 --every 6 --no-compile)
  # Small batches: judges that know nothing name one class for all, and then there are no others to draw.
  classifiers=(--epochs 3 --limit 600 --batch 32)
  label=(--count 600)
  heads=(--epochs 10 --members 2)
  jem=(--minutes 0.05 --steps 5 --batch 64)
  judge=(--epochs 1 --limit 600 --batch 32)
  bench=(--quick --out "$copy/bench")
fi

step() {
  echo "== $*"
  "$python" "recipes/cifar10/$1" "${@:2}"
}

[ -e recipes/cifar10/work/test_batch.npz ] || step pack_cifar.py
step train_classifiers.py "${classifiers[@]}"
step train_generator.py --minutes "$minutes" "${train[@]}"
step export_generator.py
step label_draws.py "${label[@]}"
step teach_heads.py "${heads[@]}"
step judge_generator.py "${judge[@]}"
step ship.py
# Small networks, side by side.
for eta in 0.1 0.01; do
  step train_class_jem.py --eta "$eta" "${jem[@]}" &
  step train_class_jem.py --eta "$eta" --replay "${jem[@]}" &
done
wait
echo "== lace bench cifar10"
"$python" -m lace bench cifar10 "${bench[@]}"
