-- spec/mistakes/layers_spec.lua: layers, modules and losses.
local mistakes = require "spec.mistakes.mistakes"

mistakes("layers and losses", {
  { "a parameter of integers", [[
local w = lt.parameter(lt.tensor{1, 2}) --!]],
    "parameter: only floating tensors have gradients, this is i64: write x:float(), or "
    .. "{requires_grad = false}" },
  { "forward called with a dot", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:forward(x) local y = self.fc(x) return y end --!
local y = Net().forward(lt.ones(1, 4))]],
    "tensor: no field or method 'fc': self is a tensor here: was the method called with '.' "
    .. "for ':'?" },
  { "a forward without self", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net.forward(x) local y = self.fc(x) return y end --!
local y = Net()(lt.ones(1, 4))]],
    "attempt to index a nil value (global 'self'); write function Class:method(...), with a "
    .. "colon, to have self" },
  { "a layer that is a local variable", [[
local Net = lt.Module:extend("Net")
function Net:init() local fc = nn.Linear(4, 2) end
function Net:forward(x) local y = self.fc(x) return y end --!
local y = Net()(lt.ones(1, 4))]],
    "attempt to call a nil value (field 'fc'); 'fc' of line 2 is a variable: for a field "
    .. "write self.fc = ..." },
  { "a layer under another name", [[
local Net = lt.Module:extend("Net")
function Net:init() self.conv1 = nn.Conv2d(3, 8, 3) end
function Net:forward(x) local y = self.conv(x) return y end --!
local y = Net()(lt.ones(1, 3, 8, 8))]],
    "attempt to call a nil value (field 'conv'); did you mean 'conv1'? (line 2)" },
  { "a layer called with a colon", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:forward(x) local y = self:fc(x) return y end --!
local y = Net()(lt.ones(1, 4))]],
    "Linear: its input is an object of class Net: a layer is called with a dot, self.layer(x), "
    .. "not self:layer(x) (in Net.fc)" },
  { "a misspelt forward", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:foward(x) local y = self.fc(x) return y end
local y = Net()(lt.ones(1, 4)) --!]],
    "Net: forward is not defined, but 'foward' is" },
  { "a forward that returns nothing", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:forward(x) local y = self.fc(x) end
local y = Net()(lt.ones(1, 4))
local l = y:sum() --!]],
    "attempt to index a nil value (local 'y')" },
  { "the first of a list with 0", [[
local layers = nn.ModuleList{nn.Linear(2, 2)}
local y = layers[0](lt.ones(2)) --!]],
    "attempt to call a nil value (field 'integer index'); positions count from 1: the first is "
    .. "x[1]" },
  { "an init that does not call the one above", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:forward(x) local y = self.fc(x) return y end --!
local Deep = Net:extend("Deep")
function Deep:init() self.more = nn.Linear(2, 2) end
local y = Deep()(lt.ones(4))]],
    "attempt to call a nil value (field 'fc'); what line 2 assigns is nil, or of another object, "
    .. "or its init was not called: Parent.init(self, ...)" },
  { "super() of Python", [[
local Net = lt.Module:extend("Net")
function Net:init() super().__init__() end --!
local net = Net()]],
    "attempt to call a nil value (global 'super'); write Parent.init(self, ...), with the class" },
  { "hparams that nothing saved", [[
local Net = lt.Module:extend("Net")
function Net:init(o) self.fc = nn.Linear(4, self.hparams.width) end --!
local net = Net{width = 3}]],
    "attempt to index a nil value (field 'hparams'); self:save_hyperparameters(o) makes it, in "
    .. "init" },
  { "Net:new", [[
local Net = lt.Module:extend("Net")
local net = Net:new() --!]],
    "attempt to call a nil value (method 'new'); an object is made by calling its class: "
    .. "Net(...)" },
  { "a list of layers with a nil", [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.last = nn.Linear(2, 2), nn.Linear(2, 2)
  self.layers = {self.first, self.secnod, self.last} --!
end
local net = Net()]],
    "Net.layers[2] is nil, and [3] is not: a list ends at its first nil: is a name misspelt?" },
  { "a list of layers with a nil deep inside", [[
local Net = lt.Module:extend("Net")
function Net:init() self.parts = {a = {nn.Linear(2, 2), nil, nn.Linear(2, 2)}} end
local list = Net():parameters() --!]],
    "Net.parts.a[2] is nil, and [3] is not: a list ends at its first nil: is a name misspelt?" },
  { "layers to freeze with a nil", [[
local layers = {nn.Linear(2, 2), nil, nn.Linear(2, 2)}
lt.callbacks.BaseFinetuning.freeze(layers) --!]],
    "callbacks.BaseFinetuning: modules[2] is nil, and [3] is not: a list ends at its first nil: is "
    .. "a name misspelt?" },
  { "a class called like a module", [[
local Net = lt.Module:extend("Net")
function Net:init() self.fc = nn.Linear(4, 2) end
function Net:forward(x) return x end
local n = Net(lt.ones(2, 4)) --!]],
    "Net: init takes no tensor: got a tensor [2, 4]: make a module first, then call it: local "
    .. "net = Net(...), net(x)" },
  { "nn.Relu", [[
local a = nn.Relu() --!]],
    "nn: there is no 'Relu'; did you mean 'ReLU'?" },
  { "Linear with one size", [[
local a = nn.Linear(4) --!]],
    "nn.Linear: out_features must be an integer: got nil" },
  { "a size as a text", [[
local a = nn.Linear("4", 2) --!]],
    "nn.Linear: in_features must be an integer: got '4'" },
  { "a bias that is a number", [[
local a = nn.Linear(4, 2, 0) --!]],
    "nn.Linear: bias must be true or false: got 0" },
  { "a misspelt option", [[
local a = nn.Linear(4, 2, {biass = false}) --!]],
    "nn.Linear: unknown option 'biass'; did you mean 'bias'?" },
  { "a layer without inputs", [[
local a = nn.Linear(0, 2) --!]],
    "nn.Linear: in_features must be at least 1: got 0" },
  { "an input of another width", [[
local a = nn.Linear(4, 2)(lt.ones(3, 5)) --!]],
    "linear: the last dim of x is not weight's: [3, 5] x [2, 4] [out, in] (in Linear)" },
  { "a layer called without input", [[
local a = nn.Linear(4, 2)() --!]],
    "linear: argument 1 must be a tensor, got nil (in Linear)" },
  { "a layer in Lua called without input", [[
local net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
local y = net() --!]],
    "Flatten: its input must be a tensor: got nil (in Sequential[1])" },
  { "a number as input", [[
local a = nn.TransformerEncoderLayer(4, 2)(3) --!]],
    "MultiheadAttention: its input must be a tensor: got 3 (in "
    .. "TransformerEncoderLayer.self_attn)" },
  { "a misspelt init", [[
local Net = lt.Module:extend("Net")
function Net:iint(o) self.fc = nn.Linear(o.width, 2) end
local net = Net{width = 3} --!]],
    "Net: init is not defined, but 'iint' is" },
  { "options for a class without init", [[
local Net = lt.Module:extend("Net")
local net = Net{width = 3} --!]],
    "Net: one argument too many: a table: its init takes none" },
  { "a layer without self", [[
local Net = lt.Module:extend("Net")
function Net:init() head = nn.Linear(2, 2) end
function Net:forward(x) local y = self.head(x) return y end --!
local y = Net()(lt.ones(2))]],
    "attempt to call a nil value (field 'head'); 'head' of line 2 is a variable: for a "
    .. "field write self.head = ..." },
  { "a layer that is assigned nil", [[
local Net = lt.Module:extend("Net")
function Net:init(o) self.head = o.head end
function Net:forward(x) local y = self.head(x) return y end --!
local y = Net{haed = nn.Linear(2, 2)}(lt.ones(2))]],
    "attempt to call a nil value (field 'head'); what line 2 assigns is nil, or of another "
    .. "object, or its init was not called: Parent.init(self, ...)" },
  { "a table as input", [[
local a = nn.Linear(4, 2)({1, 2, 3, 4}) --!]],
    "linear: argument 1 must be a tensor, got table (in Linear)" },
  { "images with channels last", [[
local a = nn.Conv2d(3, 8, 3)(lt.ones(2, 28, 28, 3)) --!]],
    "conv2d: channels do not fit: x [2, 28, 28, 3], weight [8, 3, 3, 3] [out, in / groups, "
    .. "height, width], groups 1: the channels of x come last: write x:movedim(-1, 2) (in "
    .. "Conv2d)" },
  { "an image without channels", [[
local a = nn.Conv2d(1, 8, 3)(lt.ones(28, 28)) --!]],
    "conv2d: x must be [N, C, H, W] or [C, H, W], got [28, 28] (in Conv2d)" },
  { "a kernel larger than the image", [[
local a = nn.Conv2d(1, 8, 5)(lt.ones(1, 1, 3, 3)) --!]],
    "conv2d: weight [8, 1, 5, 5] is larger than x [1, 1, 3, 3] with padding {0, 0} (in Conv2d)" },
  { "groups that do not divide", [[
local a = nn.Conv2d(3, 8, 3, {groups = 2}) --!]],
    "nn.Conv2d: groups must divide both channel counts: got 2 of 3 and 8" },
  { "padding = 'Same'", [[
local a = nn.Conv2d(3, 8, 3, {padding = "Same"}) --!]],
    "nn.Conv2d: padding must be numbers, 'same' or 'valid': got 'Same'" },
  { "a Linear after Flatten of another size", [[
local net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 28 * 28, 10))
local y = net(lt.ones(2, 1, 28, 28)) --!]],
    "linear: the last dim of x is not weight's: [2, 5408] x [10, 6272] [out, in] (in "
    .. "Sequential[4])" },
  { "an argument by another name", [[
local drop = nn.Dropout{prob = 0.5} --!]],
    "nn.Dropout: p must be a number: got a table" },
  { "weights of a file that is not there", [[
local net = nn.Linear(2, 2)
net:load_state_dict(lt.load(folder .. "/none.pt")) --!]],
    "load_state_dict: there is no state: load: cannot open none.pt: No such file or directory" },
  { "a class in Sequential", [[
local net = nn.Sequential(nn.Linear(2, 3), nn.ReLU) --!
local y = net(lt.ones(1, 2))]],
    "nn.Sequential: element 2 must be a module: got class ReLU: call it to make a module" },
  { "a hole in Sequential", [[
local net = nn.Sequential(nn.Linear(2, 3), nil, nn.Linear(3, 1)) --!
local y = net(lt.ones(1, 2))]],
    "nn.Sequential: element 2 must be a module: got nil" },
  { "a function in Sequential", [[
local net = nn.Sequential(nn.Linear(2, 3), lt.relu) --!
local y = net(lt.ones(1, 2))]],
    "nn.Sequential: element 2 must be a module: got a function" },
  { "batch norm of other channels", [[
local y = nn.BatchNorm2d(8)(lt.ones(2, 4, 5, 5)) --!]],
    "batch_norm: weight of [8] for the 4 channels of [2, 4, 5, 5] (in BatchNorm2d)" },
  { "batch norm of one sample", [[
local y = nn.BatchNorm1d(8)(lt.ones(1, 8)) --!]],
    "batch_norm: needs more than one value per channel: [1, 8] (in BatchNorm1d)" },
  { "layer norm of another width", [[
local y = nn.LayerNorm(8)(lt.ones(2, 4)) --!]],
    "layer_norm: the last dims of [2, 4] are not the normalized shape [8] (in LayerNorm)" },
  { "dropout in per cent", [[
local y = nn.Dropout(50) --!]],
    "nn.Dropout: p must be at most 1: got 50" },
  { "an id beyond the vocabulary", [[
local y = nn.Embedding(10, 4)(lt.tensor({0, 10})) --!]],
    "embedding: index 10 is out of 0..9 (dim 1 of [10, 4]) (in Embedding)" },
  { "an LSTM with another width", [[
local y = nn.LSTM(4, 8)(lt.ones(2, 3, 5)) --!]],
    "nn.LSTM: x must be [N, T, 4]: got a tensor [2, 3, 5]" },
  { "heads that do not divide", [[
local y = nn.MultiheadAttention(10, 3) --!]],
    "nn.MultiheadAttention: 10 features do not divide into 3 heads" },
  { "a weight that is nil", [[
local fc = nn.Linear(2, 2)
fc.weight = nil
local y = fc(lt.ones(1, 2)) --!]],
    "linear: argument 2 must be a tensor, got nil (in Linear)" },
  { "a field called train", [[
local Net = lt.Module:extend("Net")
function Net:init() self.train = lt.ones(3) end --!
local n = Net()]],
    "Net: 'train' is a method of every Module: give the field another name" },
  { "a class without its options", [[
local Net = lt.Module:extend("Net")
function Net:init(o) self.fc = nn.Linear(o.width, 2) end --!
local n = Net()]],
    "attempt to index a nil value (local 'o')" },
  { "a misspelt parameter", [[
local p = nn.Linear(2, 2):get_parameter("wieght") --!]],
    "get_parameter: Linear has no 'wieght'; did you mean 'weight'?" },
  { "weights of another size", [[
local a, b = nn.Linear(2, 3), nn.Linear(4, 3)
a:load_state_dict(b:state_dict()) --!]],
    "load_state_dict: the tensors do not fit Linear\n  shapes: weight is [3, 2], given [3, 4]" },
  { "weights with other names", [[
local a, b = nn.Sequential(nn.Linear(2, 3)), nn.Linear(2, 3)
a:load_state_dict(b:state_dict()) --!]],
    "load_state_dict: the tensors do not fit Sequential\n  missing: 0.weight, 0.bias\n  "
    .. "unexpected: bias, weight" },
  { "load_state_dict of a path", [[
nn.Linear(2, 3):load_state_dict("model.ckpt") --!]],
    "load_state_dict: the state must be a table: got 'model.ckpt'" },
  { "parameters with a dot", [[
local p = nn.Linear(2, 3).parameters() --!]],
    "parameters: call it with a colon, module:parameters(...): got nil instead of the Module" },
  { "a module as integers", [[
local p = nn.Linear(2, 3):to("i64") --!]],
    "to: a module goes to a device or to a floating dtype: got 'i64'" },
  { "a plain table called", [[
local net = {fc = nn.Linear(2, 2)}
local y = net(lt.ones(1, 2)) --!]],
    "attempt to call a table value (local 'net')" },
  { "a forward that calls itself", [[
local Net = lt.Module:extend("Net")
function Net:forward(x) local y = self(x) return y end
local y = Net()(lt.ones(1)) --!]],
    "stack overflow: forward calls itself: does it call self(x)?" },
  { "extend with a dot", [[
local Net = lt.Module.extend("Net") --!]],
    "extend: call it with a colon, Class:extend(\"Net\")" },
  { "a class asked for parameters", [[
local Net = lt.Module:extend("Net")
local list = Net:parameters() --!]],
    "Net is a class: call it to make a module" },
  { "a layer deep inside", [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.blocks = {nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(4, 2))}
end
function Net:forward(x)
  local y = self.blocks[1](x) --!
  return y
end
local y = Net()(lt.ones(2, 4))]],
    "linear: the last dim of x is not weight's: [2, 8] x [2, 4] [out, in] (in Net.blocks[1][3])" },
  { "an LSTM inside a module", [[
local Net = lt.Module:extend("Net")
function Net:init() self.rnn = nn.LSTM(4, 8) end
function Net:forward(x)
  local y = self.rnn(x) --!
  return y
end
local y = Net()(lt.ones(2, 5, 6))]],
    "nn.LSTM: x must be [N, T, 4]: got a tensor [2, 5, 6] (in Net.rnn)" },
  { "both results of an LSTM passed on", [[
local y = nn.Linear(8, 2)(nn.LSTM(4, 8)(lt.ones(2, 3, 4))) --!]],
    "Linear: one argument too many: a table" },
  { "binary_cross_entropy of logits", [[
local l = lt.binary_cross_entropy(lt.tensor{0.5, 1.5}, lt.ones(2)) --!]],
    "binary_cross_entropy: predictions must be in 0..1: got 1.5 (element 2 of [2]); of logits use "
    .. "binary_cross_entropy_with_logits" },
  { "binary_cross_entropy with labels above 1", [[
local l = lt.binary_cross_entropy(lt.full({3}, 0.5), lt.tensor{0.0, 1.0, 2.0}) --!]],
    "binary_cross_entropy: targets must be in 0..1: got 2 (element 3 of [3])" },
  { "BCELoss below 0", [[
local loss = nn.BCELoss()
local l = loss(lt.tensor{{0.5, -0.25}}, lt.ones(1, 2)) --!]],
    "binary_cross_entropy: predictions must be in 0..1: got -0.25 (element 2 of [1, 2]); of logits "
    .. "use binary_cross_entropy_with_logits (in BCELoss)" },
  { "cross_entropy with floating labels", [[
local l = lt.cross_entropy(lt.randn(4, 10), lt.ones(4)) --!]],
    "cross_entropy: floating targets are probabilities in the shape of the logits: [4, 10] and "
    .. "[4] (ids must be integers)" },
  { "a label out of range", [[
local l = lt.cross_entropy(lt.randn(4, 10), lt.tensor({1, 5, 10, 3})) --!]],
    "cross_entropy: targets are ids 0..9; got 10 with C = 10 (row 3)" },
  { "cross_entropy with its arguments swapped", [[
local l = lt.cross_entropy(lt.tensor({1, 5, 1, 3}), lt.randn(4, 10)) --!]],
    "cross_entropy: needs a floating tensor, got i64; write x:to('f32'); logits "
    .. "come first, labels second" },
  { "another number of labels", [[
local l = lt.cross_entropy(lt.randn(4, 10), lt.tensor({1, 2, 3})) --!]],
    "cross_entropy: logits of [4, 10] need targets of [4], got [3]" },
  { "labels [N, 1]", [[
local l = lt.cross_entropy(lt.randn(4, 10), lt.tensor({{1}, {2}, {3}, {4}})) --!]],
    "cross_entropy: logits of [4, 10] need targets of [4], got [4, 1]: write "
    .. "targets:squeeze(-1)" },
  { "logits [B, T, V]", [[
local l = lt.cross_entropy(lt.randn(2, 5, 7), lt.randint(0, 7, {2, 5})) --!]],
    "cross_entropy: logits of [2, 5, 7] need targets of [2, 7], got [2, 5]: classes are dim 2 "
    .. "of the logits: write logits:movedim(-1, 2)" },
  { "a loss class called with values", [[
local l = nn.CrossEntropyLoss(lt.randn(4, 10), lt.tensor({1, 2, 3, 4})) --!]],
    "CrossEntropyLoss: one argument too many: a tensor [4]: make the object first, then call "
    .. "it: CrossEntropyLoss()(...)" },
  { "weights of other classes", [[
local labels = lt.tensor({1, 2, 3, 4})
local l = lt.cross_entropy(lt.randn(4, 10), labels, {weight = lt.ones(3)}) --!]],
    "cross_entropy: needs a weight for each of 10 classes, got [3]" },
  { "a loss without target", [[
local l = lt.mse_loss(lt.ones(3)) --!]],
    "mse_loss: argument 2 must be a tensor, got nothing" },
  { "a reduction that is none", [[
local l = lt.mse_loss(lt.ones(3), lt.ones(3), {reduction = "avg"}) --!]],
    "mse_loss: argument 'reduction' must be one of none|mean|sum|batchmean, got avg" },
})
