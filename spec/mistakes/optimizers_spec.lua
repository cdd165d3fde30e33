-- spec/mistakes/optimizers_spec.lua: optimizers and schedulers.
local mistakes = require "spec.mistakes.mistakes"

mistakes("optimizers", {
  { "no parameters", [[
local o = lt.optim.SGD({}, {lr = 0.1}) --!]],
    "optim.SGD: there are no parameters to optimize" },
  { "a module in place of parameters", [[
local o = lt.optim.SGD(nn.Linear(2, 2), {lr = 0.1}) --!]],
    "optim.SGD: the first argument must be net:parameters(), a list of tensors or a list of "
    .. "groups: got an object of class Linear" },
  { "a rate as a text", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), "1e-3") --!]],
    "optim.Adam: lr must be a number: got '1e-3'" },
  { "parameters that is not called", [[
local net = nn.Linear(2, 2)
local o = lt.optim.Adam(net.parameters, {lr = 1e-3}) --!]],
    "optim.Adam: the first argument must be net:parameters(), a list of tensors or a list of "
    .. "groups: got a function" },
  { "a negative lr", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {lr = -1}) --!]],
    "optim.Adam: lr must be at least 0: got -1" },
  { "lr as a text", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {lr = "0.1"}) --!]],
    "optim.Adam: lr must be a number: got '0.1'" },
  { "learning_rate of Keras", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {learning_rate = 0.1}) --!]],
    "optim.Adam: unknown option 'learning_rate'; did you mean 'lr'?" },
  { "a misspelt option", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {weight_deacy = 0.1}) --!]],
    "optim.Adam: unknown option 'weight_deacy'; did you mean 'weight_decay'?" },
  { "one beta", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {betas = 0.9}) --!]],
    "optim.Adam: betas must be a table: got 0.9" },
  { "a beta of 1", [[
local o = lt.optim.Adam(nn.Linear(2, 2):parameters(), {betas = {0.9, 1.0}}) --!]],
    "optim.Adam: betas must be two numbers in 0..1, 1 excluded: got {0.9, 1.0}" },
  { "Adamw", [[
local o = lt.optim.Adamw(nn.Linear(2, 2):parameters()) --!]],
    "optim: there is no 'Adamw'; did you mean 'AdamW'?" },
  { "step with a dot", [[
local net = nn.Linear(2, 2)
local o = lt.optim.SGD(net:parameters(), {lr = 0.1})
o.step() --!]],
    "step: call it with a colon, optimizer:step(...): got nil instead of the Optimizer" },
  { "a parameter twice", [[
local net = nn.Linear(2, 2)
local o = lt.optim.SGD({net.weight, net.weight}, {lr = 0.1}) --!]],
    "optim.SGD: parameter 2 ('1') is in it twice, as '0' too" },
  { "a group without params", [[
local net = nn.Linear(2, 2)
local o = lt.optim.SGD({{parms = {net.weight}}}, {lr = 0.1}) --!]],
    "optim.SGD: a group needs params: got a table" },
  { "a layer as a group", [[
local o = lt.optim.SGD({nn.Linear(2, 2)}, {lr = 0.1}) --!]],
    "optim.SGD: a group needs params: got an object of class Linear: write {params = "
    .. "layer:parameters()}" },
  { "a misspelt option of a group", [[
local net = nn.Linear(2, 2)
local o = lt.optim.SGD({{params = {net.weight}, Lr = 1}}, {lr = 0.1}) --!]],
    "optim.SGD: unknown option 'Lr'; did you mean 'lr'?" },
  { "a scheduler without its optimizer", [[
local s = lt.optim.StepLR(10) --!]],
    "optim.StepLR: the first argument must be an optimizer: got 10" },
  { "parameters in place of the optimizer", [[
local s = lt.optim.OneCycleLR(nn.Linear(2, 2):parameters(), 0.1, {total_steps = 10}) --!]],
    "optim.OneCycleLR: the first argument must be an optimizer: got a table" },
  { "a misspelt option beside arguments by name", [[
local o = lt.optim.SGD(nn.Linear(2, 2):parameters(), {lr = 0.1})
local s = lt.optim.StepLR(o, {step_size = 10, gama = 0.1}) --!]],
    "optim.StepLR: unknown option 'gama'; did you mean 'gamma'?" },
  { "lr_scheduler of PyTorch", [[
local o = lt.optim.SGD(nn.Linear(2, 2):parameters(), {lr = 0.1})
local s = lt.optim.lr_scheduler.StepLR(o, 10) --!]],
    "optim: there is no 'lr_scheduler'; write lt.optim.StepLR and its like: schedulers are in "
    .. "lt.optim" },
  { "monitor among the options of a plateau", [[
local o = lt.optim.SGD(nn.Linear(2, 2):parameters(), {lr = 0.1})
local s = lt.optim.ReduceLROnPlateau(o, {monitor = "val_loss"}) --!]],
    "optim.ReduceLROnPlateau: unknown option 'monitor'; it belongs beside lr_scheduler: {optimizer "
    .. "= o, lr_scheduler = s, monitor = 'val_loss'}" },
  { "no T_max", [[
local o = lt.optim.SGD(nn.Linear(2, 2):parameters(), {lr = 0.1})
local s = lt.optim.CosineAnnealingLR(o) --!]],
    "optim.CosineAnnealingLR: T_max must be an integer: got nil" },
  { "a plateau without its metric", [[
local o = lt.optim.SGD(nn.Linear(2, 2):parameters(), {lr = 0.1})
local s = lt.optim.ReduceLROnPlateau(o)
s:step() --!]],
    "optim.ReduceLROnPlateau: step needs the metric's value: got nil" },
  { "the state of another optimizer", [[
local a, b = nn.Linear(2, 2), nn.Linear(3, 3)
local o = lt.optim.Adam(a:parameters())
local p = lt.optim.SGD(b:parameters(), {lr = 1})
o:load_state_dict(p:state_dict()) --!]],
    "optim.Adam: load_state_dict: the state is that of SGD, not of Adam" },
  { "clip_grad_norm in optim", [[
local n = nn.Linear(2, 2)
lt.optim.clip_grad_norm(n, 1) --!]],
    "optim: there is no 'clip_grad_norm'; write lt.nn.clip_grad_norm_" },
})
