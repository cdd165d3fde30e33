-- spec/mistakes/tensors_spec.lua: shapes, dims, indices, numpy's names, Python's functions.
local lt = require "ltrain"
local mistakes = require "spec.mistakes.mistakes"

local dtypes <const> = {}
for k, row in ipairs(lt.dtypes()) do dtypes[k] = row.name end

mistakes("tensors", {
  { "a view with the wrong sizes", [[
local x = lt.ones(2, 3)
local y = x:view(4, 2) --!]],
    "view: shape [4, 2] does not hold the 6 elements of [2, 3]" },
  { "two sizes of -1", [[
local y = lt.ones(2, 3):view(-1, -1) --!]],
    "view: impossible shape [-1, -1] (one size may be -1: what is left)" },
  { "sizes as a table and as numbers", [[
local y = lt.ones(2, 3):reshape({3, 2}, 1) --!]],
    "reshape: one argument too many: 1; it is reshape(x, size)" },
  { "a product that needs a transpose", [[
local y = lt.ones(2, 3):matmul(lt.ones(2, 3)) --!]],
    "matmul: inner sizes differ: [2, 3] x [2, 3]" },
  { "shapes that do not broadcast", [[
local y = lt.ones(2, 3) + lt.ones(4) --!]],
    "add: shapes do not broadcast: [2, 3] and [4]" },
  { "a bias that is nil", [[
local bias
local y = lt.ones(2, 3) + bias --!]],
    "add: operands must be tensors or numbers, got a tensor and nil" },
  { "a list in place of a tensor", [[
local y = lt.ones(3) + {1, 2, 3} --!]],
    "add: operands must be tensors or numbers, got a tensor and table" },
  { "cat along the wrong dim", [[
local y = lt.cat({lt.ones(2, 3), lt.ones(2, 4)}, 1) --!]],
    "cat: shapes differ outside dim 1: [2, 3] and [2, 4] (tensor 2)" },
  { "cat without a list", [[
local y = lt.cat(lt.ones(2, 3), lt.ones(2, 3)) --!]],
    "cat: needs a table of tensors, got a tensor" },
  { "dim 0, as in PyTorch", [[
local y = lt.cat({lt.ones(2, 3), lt.ones(2, 3)}, 0) --!]],
    "cat: argument 'dim': dims start at 1, got 0" },
  { "index 0, as in Python", [[
local y = lt.ones(3)[0] --!]],
    "index: positions start at 1, got 0" },
  { "an index beyond the end", [[
local y = lt.ones(3)[4] --!]],
    "index: position 4 is out of range 1..3 of shape [3]" },
  { "a slice of numpy", [[
local x = lt.ones(3, 4)
local y = x[":, 1"] --!]],
    "tensor: no field or method ':, 1'; write x[{lt.all, 2}], x[{{1, 3}}] for slices" },
  { "x.T of numpy", [[
local x = lt.ones(3, 4)
local y = x.T --!]],
    "tensor: no field or method 'T'; write x:t(), or x:transpose(-2, -1)" },
  { "x.shape() as a function", [[
local x = lt.ones(3, 4)
local y = x.shape() --!]],
    "attempt to call a table value (field 'shape'); shape is a table of sizes: x.shape[1], or "
    .. "x:size(1)" },
  { "a dot for a colon: x.size(1)", [[
local x = lt.ones(3, 4)
local n = x.size(1) --!]],
    "size: argument 1 must be a tensor, got 1; a method is called with a colon: "
    .. "x:size(...)" },
  { "len(x) of Python", [[
local x = lt.ones(3, 4)
local n = len(x) --!]],
    "attempt to call a nil value (global 'len'); write #x" },
  { "range of Python", [[
for i in range(3) do end --!]],
    "attempt to call a nil value (global 'range'); write for i = 1, n do" },
  { "x.item() with a dot", [[
local x = lt.ones(1)
local v = x.item() --!]],
    "item: argument 1 must be a tensor, got nothing; a method is called with a colon: "
    .. "x:item(...)" },
  { "item of several elements", [[
local v = lt.ones(3):item() --!]],
    "item: needs a tensor of one element, got [3]" },
  { "a comparison as a condition", [[
local x = lt.ones(3)
if x > 0 then print "bigger" end --!]],
    "<: Lua converts the result to one boolean: write a:lt(b) (or a:gt(b)) to compare elements" },
  { "ipairs of a tensor", [[
for i, v in ipairs(lt.ones(3)) do print(i, v) end --!]],
    "index: a tensor is not a table: write `for i, row in x:rows() do` instead of ipairs(x)" },
  { "for x in tensor, as in Python", [[
for v in lt.ones(3) do print(v) end --!]],
    "index: `for ... in x`: a tensor is not an iterator: write `for i, row in x:rows() do`" },
  { "rows of different lengths", [[
local x = lt.tensor({{1, 2}, {3}}) --!]],
    "tensor: ragged table: [2] has 1 elements, its neighbours 2" },
  { "texts in a tensor", [[
local x = lt.tensor({"a", "b"}) --!]],
    "tensor: [1] must be a number, got 'a'" },
  { "a hole in a list", [[
local x = lt.tensor({1, nil, 3}) --!]],
    "tensor: [2] must be a number, got nil" },
  { "a table with names as a tensor", [[
local x = lt.tensor({x = 1, y = 2}) --!]],
    "tensor: the table has no element 1, but other keys: only lists become tensors" },
  { "a list of tensors as a tensor", [[
local x = lt.tensor({lt.ones(2), lt.ones(2)}) --!]],
    "tensor: [1] is a tensor: join tensors with lt.stack or lt.cat" },
  { "a dtype of torch", [[
local x = lt.zeros({2, 3}, {dtype = lt.float32}) --!]],
    "ltrain: there is no lt.float32; write \"f32\": a dtype is a text" },
  { "a misspelt method", [[
local y = lt.ones(3):softmaxx(1) --!]],
    "tensor: no field or method 'softmaxx'; did you mean 'softmax'?" },
  { "lt.Tensor, with a capital", [[
local y = lt.Tensor({1, 2}) --!]],
    "ltrain: there is no lt.Tensor; write lt.tensor(list, {dtype = \"f32\"})" },
  { "a FloatTensor", [[
local y = lt.FloatTensor(2, 3) --!]],
    "ltrain: there is no lt.FloatTensor; write lt.tensor(list, {dtype = \"f32\"})" },
  { "x:numpy()", [[
local y = lt.ones(3):numpy() --!]],
    "tensor: no field or method 'numpy'; write x:tolist(), or lt.numpy.save(path, x)" },
  { "astype of numpy", [[
local y = lt.ones(3):astype("i64") --!]],
    "tensor: no field or method 'astype'; write x:to \"i64\"" },
  { "softmax without dim", [[
local y = lt.ones(2, 3):softmax() --!]],
    "softmax: argument 'dim' is missing; it is softmax(x, dim)" },
  { "a dim that is not there", [[
local y = lt.ones(2, 3):softmax(3) --!]],
    "softmax: dim 3 is out of range for shape [2, 3] (1..2 or -1..-2)" },
  { "axis, as in numpy", [[
local y = lt.ones(2, 3):sum({axis = 1}) --!]],
    "sum: unknown option 'axis'; did you mean 'dims'?" },
  { "permute with positions from 0", [[
local y = lt.ones(2, 3, 4):permute(0, 2, 1) --!]],
    "permute: argument 'dims': dims start at 1, got 0" },
  { "permute with too many dims", [[
local y = lt.ones(2, 3):permute(1, 2, 3) --!]],
    "permute: 3 dims given for shape [2, 3]" },
  { "gather with the index before the dim", [[
local y = lt.ones(2, 3):gather(lt.zeros(2, 1):long(), 2) --!]],
    "gather: the dim comes before the index; it is gather(x, dim, index)" },
  { "an option in the list of sizes", [[
local parts = lt.ones(3, 4):split({1, 2, dim = 1}) --!]],
    "split: a list of sizes has the option 'dim': give it in a table after it" },
  { "an option in the list of places", [[
local parts = lt.ones(3, 4):tensor_split{1, 2, dim = 2} --!]],
    "tensor_split: a list of places has the option 'dim': give it in a table after it" },
  { "floats as an index", [[
local y = lt.ones(3)[lt.tensor({1.5, 2.0})] --!]],
    "index: a tensor must hold integers or bools, got f32" },
  { "a row of another length assigned", [[
local x = lt.ones(3, 2)
x[1] = lt.ones(3) --!]],
    "copy: [3] does not fit into [2]" },
  { "a text assigned", [[
local x = lt.ones(3)
x[1] = "a" --!]],
    "index: can only assign a tensor or a number, got 'a'" },
  { "a == b as a mask", [[
local x = lt.randn(3, 2)
local hits = (x:argmax(-1) == lt.tensor{0, 1, 0}):mean() --!]],
    "attempt to index a boolean value; == of tensors is one boolean: write a:eq(b), a:ne(b)" },
  { "two sizes at once, as in Python", [[
local rows, columns = lt.ones(2, 3).shape
local n = rows[1] * columns --!]],
    "attempt to perform arithmetic on a nil value (local 'columns'); the sizes are one table: "
    .. "write local a, b = table.unpack(x.shape)" },
  { "shape[0]", [[
local x = lt.ones(2, 3)
local y = x:view(x.shape[0], -1) --!]],
    "view: argument 'size' is nil; it is view(x, size); positions count from 1: the "
    .. "first is x[1]" },
  { "a size that is nil", [[
local x = lt.ones(2, 3)
local y = x:view(6, nil) --!]],
    "view: argument 'size' contains nil; it is view(x, size)" },
  { "False of Python", [[
local x = lt.ones(2)
x.requires_grad = False --!]],
    "requires_grad: must be true or false, got nil; False is a name without value here: write "
    .. "false" },
  { "a dtype by its position", [[
local x = lt.zeros({2, 3}, "i64") --!]],
    "zeros: options must be a table, {dtype = 'f64'}: got 'i64'" },
  { "texts that are added", [[
print("loss " + 3) --!]],
    "attempt to add a 'string' with a 'number'; texts are joined by a .. b" },
  { "f'...' of Python", [[
print(f"loss {loss}") --!]],
    "attempt to call a nil value (global 'f'); write ('loss %g'):format(loss)" },
  { "a field of a tensor", [[
local x = lt.ones(3)
x.name = "weights" --!]],
    "tensor: no field or method 'name'" },
  { "floating ids for an Embedding", [[
local emb = nn.Embedding(10, 4)
local y = emb(lt.ones(2, 3)) --!]],
    "embedding: indices must be integers, got f32; write x:long() (in Embedding)" },
  { "a device that has another name", [[
local y = lt.ones(3):to("vpu") --!]],
    ("to: 'vpu' is neither a dtype (%s) nor a device (cpu, meta, cuda, xla)"):format(
      table.concat(dtypes, " ")) },
  { "a method that is not called", [[
local x = lt.ones(3).detach
local y = x + 1 --!]],
    "attempt to perform arithmetic on a function value (local 'x'); a method is called: "
    .. "x:name()" },
  { "a dot in a chain of methods", [[
local y = lt.ones(3):relu().sum() --!]],
    "sum: argument 1 must be a tensor, got nothing; a method is called with a colon: x:sum(...)" },
  { "a mask of floats", [[
local y = lt.ones(3):masked_fill(lt.ones(3), 0) --!]],
    "masked_fill: the mask must be bool, got f32; write x:ne(0), or x:gt(y)" },
  { "a fractional size", [[
local n = lt.zeros(2.5) --!]],
    "zeros: argument 'size' must be an integer, got 2.5" },
  { "a negative size", [[
local n = lt.zeros(-1) --!]],
    "zeros: impossible shape [-1] (sizes are at least 0)" },
  { "randint without an upper bound", [[
local y = lt.randint(5) --!]],
    "randint: argument 'high' is missing" },
  { "a loss of [N, 1] and [N]", [[
local l = lt.mse_loss(lt.ones(4, 1), lt.ones(4)) --!]],
    "mse_loss: shapes differ: [4, 1] and [4]" },
  { "expand of sizes that x lacks", [[
local y = lt.ones(3):expand(-1, 3, -1) --!]],
    "expand: size 1 is -1, the size that x has there, and x is [3]: it has fewer dims than the 3 "
    .. "sizes" },
  { "a local that is not visible", [[
local function f() local rows = 3 return rows end
local x = lt.ones(f()):view(rows + 1) --!]],
    "attempt to perform arithmetic on a nil value (global 'rows'); the local of line 1 is not "
    .. "visible here" },
  { "a comma that is lost between two locals", [[
local rows
columns = 2, 3
local x = rows + 1 --!]], "attempt to perform arithmetic on a nil value (local 'rows')" },
  { "a key that a table lacks", [[
local sizes, split = {train = 1}, "val"
local x = sizes[split]:view(1) --!]],
    "attempt to index a nil value (field '?'); sizes[split] is nil: there is no such key" },
  { "expand of a size that is not 1", [[
local y = lt.ones(2, 3):expand(4, 3) --!]],
    "expand: [2, 3] cannot be repeated to [4, 3]" },
  { "a tensor in a text", [[
local l = lt.ones(1):sum()
local s = "loss " .. l --!]],
    "..: a tensor is not a string: write tostring(x), or lt.cat({a, b}, dim) to concatenate "
    .. "tensors" },
  { "for x in list, as in Python", [[
for x in {1, 2} do end --!]],
    "attempt to call a table value (for iterator 'for iterator'); write for i, value in "
    .. "ipairs(list) do, or for key, value in pairs(t) do" },
  { "a tensor in string.format", [[
local s = ("%d"):format(lt.ones(1)) --!]],
    "bad argument #1 to 'format' (number expected, got ltrain.Tensor); a number of a tensor of "
    .. "one element is x:item()" },
  { "math.sqrt of a tensor", [[
local s = math.sqrt(lt.ones(1)) --!]],
    "bad argument #1 to 'sqrt' (number expected, got ltrain.Tensor); write x:sqrt()" },
  { "linalg.inverse", [[
local s = lt.linalg.inverse(lt.ones(3)) --!]],
    "linalg: there is no 'inverse'; write lt.linalg.inv" },
  { "json.loads", [[
local s = lt.json.loads("x") --!]],
    "json: there is no 'loads'; write lt.json.decode" },
  { "a misspelt initializer", [[
local s = nn.init.xavier(lt.ones(3)) --!]],
    "nn.init: there is no 'xavier'" },
  { "a loss printed with %.3f", [[
local loss = lt.ones(2, 2):mean()
print(("loss %.3f"):format(loss)) --!]],
    "bad argument #1 to 'format' (number expected, got ltrain.Tensor); a number of a tensor of "
    .. "one element is x:item()" },
  { "a Parameter of torch", [[
local w = lt.nn.Parameter(lt.ones(2)) --!]],
    "nn: there is no 'Parameter'; write lt.parameter(x)" },
  { "lt.DataLoader, not in lt.data", [[
local loader = lt.DataLoader({1, 2}, {batch_size = 2}) --!]],
    "ltrain: there is no lt.DataLoader; write lt.data.DataLoader" },
  { "lt.Linear, not in lt.nn", [[
local layer = lt.Linear(2, 3) --!]],
    "ltrain: there is no lt.Linear; write lt.nn.Linear" },
  { "lt.manual_seed", [[
lt.manual_seed(0) --!]],
    "ltrain: there is no lt.manual_seed; write lt.seed(n)" },
  { "einsum of shapes that differ", [[
local y = lt.einsum("ij,jk->ik", lt.ones(2, 3), lt.ones(4, 5)) --!]],
    "einsum: 'j' is 3 in one operand and 4 in [4, 5], operand 2 of 'ij,jk->ik'" },
  { "show of a batch of images", [[
lt.ones(8, 3, 4, 4):show() --!]],
    "show: needs a vector, a matrix [H, W] or an image [C, H, W] of 1, 3 or 4 channels: got a "
    .. "tensor [8, 3, 4, 4]: show one of them, x[1]:show(), or all of them, "
    .. "lt.image.grid(x):show()" },
  { "plot of a matrix", [[
lt.plot(lt.ones(3, 2)) --!]],
    "plot: the series must be a tensor [N]: got a tensor [3, 2]: kind = 'heatmap' draws a matrix" },
})
