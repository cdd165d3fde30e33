-- spec/mistakes/checkpoints_spec.lua: files of another model, or none.
local mistakes = require "spec.mistakes.mistakes"
local prelude = require "spec.mistakes.prelude"

mistakes("checkpoints", {
  { "a checkpoint that is missing", [[
lt.Trainer(quiet()):fit(Net(), loader(), {ckpt_path = "none.ckpt"}) --!]],
    "fit: cannot load the checkpoint: load: cannot open none.ckpt: No such file or directory" },
  { "load_from_checkpoint with a dot", [[
local net = Net.load_from_checkpoint("last.ckpt") --!]],
    "load_from_checkpoint: call it with a colon, Net:load_from_checkpoint(file): got "
    .. "'last.ckpt' instead of the class" },
  { "save_checkpoint before fit", [[
lt.Trainer(quiet()):save_checkpoint("/tmp/d/b.ckpt") --!]],
    "save_checkpoint: no module is attached: fit first" },
  { "a monitor that is not logged", [[
local best = lt.callbacks.ModelCheckpoint{monitor = "acc", dirpath = folder}
local trainer = lt.Trainer(quiet{enable_checkpointing = true, callbacks = {best}})
trainer:fit(Net(), loader()) --!]],
    "ModelCheckpoint: nothing called 'acc' was logged; there is: train_loss" },
  { "save_topk", [[
lt.callbacks.ModelCheckpoint{save_topk = 3} --!]],
    "callbacks.ModelCheckpoint: unknown option 'save_topk'; did you mean 'save_top_k'?" },
  { "the checkpoint of another model", [[
local path = folder .. "/net.ckpt"
local trainer = lt.Trainer(quiet())
trainer:fit(Net(), loader())
trainer:save_checkpoint(path)
local Wide = Net:extend("Wide")
function Wide:init() self.fc = nn.Linear(4, 3) end
lt.Trainer(quiet()):fit(Wide(), loader(), {ckpt_path = path}) --!]],
    "load_state_dict: the tensors do not fit Wide (read from net.ckpt)\n  shapes: fc.weight is "
    .. "[3, 4], given [2, 4], fc.bias is [3], given [2]" },
  { "a checkpoint that is a text", [[
local file = io.open(folder .. "/hello.ckpt", "wb")
file:write("hello"):close()
lt.Trainer(quiet()):fit(Net(), loader(), {ckpt_path = folder .. "/hello.ckpt"}) --!]],
    "fit: cannot load the checkpoint: load: hello.ckpt is not a safetensors file: only 5 bytes" },
  { "a folder in place of a checkpoint", [[
lt.Trainer(quiet()):fit(Net(), loader(), {ckpt_path = "/"}) --!]],
    "fit: cannot load the checkpoint: /: not a checkpoint: a folder without "
    .. "index.safetensors" },
  { "weights in nested tables", [[
local net = Net()
net:load_state_dict({fc = {weight = lt.ones(2, 4)}}) --!]],
    "load_state_dict: the tensors do not fit Net\n  missing: fc.weight, fc.bias\n  unexpected: "
    .. "fc" },
}, prelude)
