-- spec/examples/on_ranks.lua: the examples as a reader starts them on several ranks, for specs.
local root <const> = os.getenv("LT_ROOT") or "."
local FEW <const> = " --max_epochs 1 --limit_train_batches 2 --limit_val_batches 2 "
  .. "--limit_test_batches 2 --num_sanity_val_steps 1 --log_every_n_steps 1"

local function run(name) return ("run '%s/examples/%s'%s"):format(root, name, FEW) end

local function plain(name, arguments)
  return ("'%s/examples/%s' %s"):format(root, name, arguments or "")
end

--- { words for ltrain, ranks, what it prints, how often }: each makes a few steps only. Those that
--- know nothing of ranks print once on each. `after`: the number of the one whose files it reads.
return {
  { run "mlp.lua", 2, "val_acc=", 1 },
  { run "digits.lua", 2, "\ntest_acc  ", 1 },
  { run "char_gpt.lua", 2, "\nt[%a%s.,;:'!?&$3-]+\n", 1 },
  { run "ddp.lua", 2, "ranks 2, global batch 64, val_acc 0.%d+\n", 1 },
  { run "pipeline.lua", 2, "ranks 2, val_acc 0.%d+\n", 1 },
  { run "context_parallel.lua", 2, "positions 32 of 64, loss %d.%d+\n", 1 },
  { run "mixture_of_experts.lua", 2, "4 of 8 experts, val_acc 0.%d+, highest load 0.%d+\n", 1 },
  { plain("ddp_manual.lua", "2 2"), 2, "ranks 2, steps 2, accuracy 0.%d+\n", 1 },
  { plain("horovod.lua", "2"), 2, "ranks 2, steps 2, accuracy 0.%d+\n", 1 },
  { run "sharded_checkpoint.lua", 2, "saved by 2 ranks at step 2; resumed to step %d\n", 1 },
  { run "tensor_parallel.lua", 2, "loss %d.%d+; %d+ parameters of 103168 on a rank\n", 1 },
  { plain "ring.lua", 4, "token: rank 0, rank 1, rank 2, rank 3, back after 4 steps\n", 4 },
  { plain("manual_loop.lua", "20"), 2, "step 20: loss 0.%d+\n", 2 },
  { plain("predict.lua", "ltrain_logs/version_0/checkpoints/last.ckpt 1"), 2,
    "answer %d %([%d.]+ %% sure%), label %d", 2, after = 2 },
  { run "sweep.lua", 2, "val_acc=", 1 },
  { run "generate.lua", 2, "val_loss=", 1 },
  { run "images.lua", 2, "val_acc=", 1 },
  { run "tabular.lua", 2, "val_error=", 1 },
  { run "text_classification.lua", 2, "\n *%d+ %% good: the story was superb%.\n", 1 },
  { run "elastic.lua", 2, "val_acc 0.%d+\n", 1 },
  { run "fine_tune.lua", 2, "\naccuracy %d+%.%d %%\n", 1 },
}
