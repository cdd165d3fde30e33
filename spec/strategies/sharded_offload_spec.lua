-- spec/strategies/sharded_offload_spec.lua: Sharded{offload = ...}: shards, their gradients and the
-- state of optimizers on the host, beside DDP.
-- tags: sampled, slow, third
local net = require "spec.strategies.sharded_net"
local turns = require "spec.turns"

local prints <const> = net.prints

-- Ranks that compute on devices of their own, in f64.
local ON_DEVICES <const> = net.BLOCKS .. [[
local device = {device = function(_, rank) return "fake:" .. rank end}
local function with(options)
  local all = {accelerator = device, precision = "64-true"}
  for name, value in pairs(options or {}) do all[name] = value end
  return all
end
local function close(strategy, o, options) return apart(strategy, o, with(options)) < 1e-9 end
]]

-- fn(options of Sharded as Lua), for one of the stages' variants, or for all.
local function each_variant(fn)
  local variants = { "stage = 1", "stage = 3", "stage = 2", "stage = 3, keep_below = 13",
    "stage = 2, accumulate = 'whole'" }
  for i, variant in ipairs(variants) do variants[i] = variant .. ", units = 1, offload = 'cpu'" end
  turns(variants, 1, fn)
end

describe("offload = 'cpu'", function()
  it("trains to what DDP gives, with shards on the host and products on devices", function()
    each_variant(function(variant)
      prints("true true true\n", 2, ON_DEVICES .. ([[
        local strategy = lt.strategies.Sharded {%s}
        function Blocks:on_train_batch_end()
          for _, optimizer in ipairs(self.trainer.optimizers) do
            for tensor, slots in pairs(optimizer.state) do
              if self.trainer.strategy ~= strategy then break end
              assert(tensor.device == "cpu" and slots.exp_avg.device == "cpu", tensor.device)
            end
          end
          assert(self.first.weight.device == "fake:" .. rank())
        end
        print(close(strategy), close(strategy, nil, {gradient_clip_val = 0.05}),
          close(strategy, nil, {accumulate_grad_batches = 4}))
      ]]):format(variant))
    end)
  end)
end)

describe("steps that are not taken", function()
  it("are those of DDP, with a scaled loss and with nonfinite = 'skip'", function()
    each_variant(function(variant)
      prints("true true\n", 2, ON_DEVICES .. ([[
        local Wild = Blocks:extend("Wild")
        function Wild:training_step(batch, i)
          local loss = Blocks.training_step(self, batch)
          return i == 3 and rank() == 1 and loss * math.huge or loss
        end
        local strategy = lt.strategies.Sharded {%s}
        local function is_close(options)
          return apart(strategy, {class = Wild}, with(options)) < 1e-4
        end
        print(is_close {precision = "16-mixed"}, is_close {nonfinite = "skip"})
      ]]):format(variant))
    end)
  end)
end)

describe("offload_activations", function()
  it("keeps what recomputed modules are called with on the host", function()
    prints("true\ntrue\n", 2, ON_DEVICES .. [[
      local runtime = require "ltrain.c".runtime
      local live = {}
      function Blocks:on_before_backward()
        collectgarbage()
        local strategy = self.trainer.strategy
        live[strategy.offload_activations or false] = runtime.memory(self.device).live_bytes
      end
      local function wide(o)
        return lt.strategies.Sharded {stage = 2, units = 1, offload_activations = o,
          activation_checkpointing = {nn.Sequential}}
      end
      local options = {max_epochs = 1, max_steps = 2}
      print(close(wide(true), nil, options) and close(wide(false), nil, options))
      print(live[true] < live[false])
    ]])
  end)

  it("needs modules that are computed again", function()
    net.fails(1, "offload_activations is of the modules that activation_checkpointing names", [[
      lt.strategies.Sharded {stage = 2, offload_activations = true}
    ]])
  end)
end)

describe("a checkpoint of shards on the host", function()
  it("resumes in mid-window, in one file or in parts, also under another strategy", function()
    for stage = 2, 3 do
      prints("true true true true\n", 2, ON_DEVICES .. ([[
        local function sharded(kind)
          return lt.strategies.Sharded {stage = %d, units = 1, offload = "cpu",
            state_dict_type = kind}
        end
        local function options() return with {accumulate_grad_batches = 4} end
        local wanted = fit("ddp", {class = Blocks}, options()):state_dict()
        local Cut = Blocks:extend("Cut")
        function Cut:on_train_batch_end(_, _, i)
          if i == 1 and self.current_epoch == 1 then self.trainer:save_checkpoint "cut" end
        end
        local results = {}
        for _, kind in ipairs {"full", "sharded"} do
          fit(sharded(kind), {class = Cut}, options())
          for _, strategy in ipairs {sharded(), "ddp"} do
            local got = fit(strategy, {class = Blocks}, options(), {ckpt_path = "cut"}):state_dict()
            local most = 0
            for key, value in pairs(wanted) do
              most = math.max(most, (value - got[key]):abs():max():item())
            end
            results[#results + 1] = most < 1e-9
          end
          os.execute "rm -rf cut"
        end
        print(table.unpack(results))
      ]]):format(stage))
    end
  end)

  it("is no more needed by a fit that goes on with the optimizer of another", function()
    prints("0\n", 2, ON_DEVICES .. [[
      local function twice(strategy)
        lt.seed(1)
        local net = Blocks()
        local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
        function net:configure_optimizers() return optimizer end
        for _ = 1, 2 do
          trainer(with {strategy = strategy(), max_epochs = 1}):fit(net, loader())
        end
        return net:state_dict()
      end
      local a = twice(function() return lt.strategies.Sharded {units = 1, offload = "cpu"} end)
      local b, most = twice(function() return "ddp" end), 0
      for key, value in pairs(a) do most = math.max(most, (value - b[key]):abs():max():item()) end
      print(most)
    ]])
  end)
end)

-- Blocks wide enough for their shards to be worth files, and what of a process's memory is in files
-- of a folder, in KiB of its address space, and in no file.
local WIDE <const> = ON_DEVICES .. [[
local Wide = Blocks:extend("Wide")
function Wide:init() Blocks.init(self, {width = 6000}) end
local function memory(folder)
  local files, anonymous, is_file = 0, 0, false
  for line in io.lines "/proc/self/smaps" do
    if line:find "^%x+%-%x+ " then is_file = line:find(folder, 1, true) ~= nil end
    local name, size = line:match "^(%w+): *(%d+) kB"
    if name == "Size" and is_file then files = files + tonumber(size) end
    if name == "Anonymous" then anonymous = anonymous + tonumber(size) end
  end
  return files, anonymous
end
]]

describe("offload = {path = ...}", function()
  it("trains to the bits of offload = 'cpu', on the host and on devices", function()
    turns({ "stage = 2", "stage = 3" }, 1, function(stage)
      for _, options in ipairs { "", "accelerator = device" } do
        prints("0 0\n", 2, WIDE .. ([[
          local function bits_of(offload, own)
            local options = {max_epochs = 1, %s}
            for name, value in pairs(own or {}) do options[name] = value end
            local net, t = fit(lt.strategies.Sharded {%s, units = 1, offload = offload},
              {class = Wide}, options)
            return bits(net, t)
          end
          local function differ(options)
            return bits_of({path = "files"}, options) == bits_of("cpu", options) and 0 or 1
          end
          print(differ(), differ {accumulate_grad_batches = 2, gradient_clip_val = 0.05})
        ]]):format(options, stage))
      end
    end)
  end)

  it("has shards, gradients and the optimizer's state in files that are gone afterwards", function()
    prints("true true true\n", 2, WIDE .. [[
      local during
      function Wide:on_before_optimizer_step() self.steps = (self.steps or 0) + 1 end
      function Wide:on_before_zero_grad()
        if self.steps == 2 then during = memory "/files/" end
      end
      fit(lt.strategies.Sharded {units = 1, offload = {path = "files"}}, {class = Wide},
        {max_epochs = 1})
      collectgarbage()
      -- 24 weights of 3 blocks, in f32, over 2 ranks: the shard, its gradient and two of Adam
      local wanted = 6000 * 24 * 3 * 4 // 2 * 4 // 1024
      print(during >= wanted and during < wanted * 1.2, memory "/files/" == 0,
        #require "ltrain.c".io.list_folder "files" == 0)
    ]])
  end)

  it("keeps that much out of the memory of the process", function()
    local function anonymous(offload)
      return tonumber((net.over("shm", 2, WIDE .. ([[
        local anonymous
        function Wide:init() Blocks.init(self, {width = 100000}) end
        function Wide:on_before_zero_grad() anonymous = select(2, memory "/files/") end
        fit(lt.strategies.Sharded {units = 1, offload = %s}, {class = Wide}, {max_steps = 3})
        print(anonymous)
      ]]):format(offload))))
    end
    local less = anonymous "nil" - anonymous "{path = 'files'}"
    local state = 100000 * 24 * 3 * 4 // 2 * 4 // 1024 -- shards, gradients and Adam's state
    assert.truthy(less > 0.8 * state, less)
  end)

  it("resumes from checkpoints", function()
    prints("true true\n", 2, WIDE .. [[
      local function sharded(kind)
        return lt.strategies.Sharded {units = 1, offload = {path = "files"}, state_dict_type = kind}
      end
      local wanted = lt.hash(fit("ddp", {class = Wide}, {max_epochs = 1}):state_dict())
      local Cut = Wide:extend("Cut")
      function Cut:on_train_batch_end(_, _, i)
        if i == 3 then self.trainer:save_checkpoint "cut" end
      end
      for _, kind in ipairs {"full", "sharded"} do
        fit(sharded(kind), {class = Cut}, {max_epochs = 1})
        local got = fit(sharded(), {class = Wide}, {max_epochs = 1}, {ckpt_path = "cut"})
        io.write(tostring(lt.hash(got:state_dict()) == wanted), kind == "full" and " " or "\n")
        os.execute "rm -rf cut"
      end
    ]])
  end)

  it("names a folder that cannot be made", function()
    net.fails(2, "strategies.Sharded: offload: make_folder: cannot make folder /dev/null",
      WIDE .. "fit(lt.strategies.Sharded {offload = {path = '/dev/null/files'}})")
  end)

  it("names the folder and the bytes where the disk is full", function()
    local words = "unshare -rm"
    if os.execute "unshare -m true 2>/dev/null" then words = "unshare -m" end
    if not os.execute(words .. " mount -t tmpfs ltrain /mnt 2>/dev/null") then
      return pending "this user may not mount a small disk"
    end
    net.fails(nil, "offload: cannot make a file of 288000 bytes in /mnt: No space left on device",
      ([[
        local lt = require "ltrain"
        if not arg[1] then
          local command = "mount -t tmpfs -o size=256k ltrain /mnt && '%s' script.lua small"
          os.exit(os.execute(("%s sh -c %%q"):format(command)) and 0 or 1)
        end
        local Offload = require "ltrain.strategies.sharded.Offload"
        Offload {path = "/mnt"}:copy(lt.ones(72000), "f32")
      ]]):format(os.getenv "LTRAIN" or "ltrain", words))
  end)
end)

describe("parameters in 16 bits", function()
  -- Each step changes a weight by less than bf16 can tell.
  local SMALL <const> = net.BLOCKS .. [[
    local Small = Blocks:extend("Small")
    function Small:training_step(batch)
      return self(batch[1]):mean() * 0 + self.first.weight:sum()
    end
    function Small:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 4e-4}) end
    local function weights(strategy, options, fit_options, class)
      local all = {precision = "bf16-true", max_epochs = 4}
      for name, value in pairs(options or {}) do all[name] = value end
      local net = fit(strategy, {class = class or Small}, all, fit_options)
      return net.first.weight:to "f32"
    end
    local function moved(strategy)
      lt.seed(1)
      local before = Small().first.weight:to "bf16":to "f32"
      return ((before - weights(strategy)):mean():item() / (4 * 9 * 4e-4))
    end
  ]]

  it("have shards in f32, in which small updates add up", function()
    for _, variant in ipairs { "stage = 1", "stage = 2", "stage = 3",
      "stage = 3, offload = {path = 'files'}" } do
      prints("true bf16\n", 2, SMALL .. ([[
        local dtype
        function Small:on_train_end() dtype = self.last.bias.dtype end
        local by = moved(lt.strategies.Sharded {%s, units = 1})
        print(by > 0.8 and by < 1.2 or by, dtype)
      ]]):format(variant))
    end
  end)

  it("resume with them", function()
    for _, kind in ipairs { "full", "sharded" } do
      prints("true true\n", 2, SMALL .. ([[
        local Cut = Small:extend("Cut")
        function Cut:on_train_batch_end(_, _, i)
          if i == 3 and self.current_epoch == 1 then self.trainer:save_checkpoint "cut" end
        end
        local function sharded(stage)
          return lt.strategies.Sharded {stage = stage, units = 1, state_dict_type = '%s'}
        end
        for stage = 2, 3 do
          local wanted = weights(sharded(stage), nil, nil, Cut)
          local got = weights(sharded(stage), nil, {ckpt_path = "cut"})
          io.write(tostring(lt.equal(wanted, got)), stage == 2 and " " or "\n")
          os.execute "rm -rf cut"
        end
      ]]):format(kind))
    end
  end)
end)

describe("offload", function()
  it("says what it can be", function()
    for value, shown in pairs { ["'gpu'"] = "'gpu'", ["{path = 3}"] = "a table" } do
      net.fails(2, "strategies.Sharded: offload must be 'cpu', or {path = a folder}: got " .. shown,
        ("lt.strategies.Sharded {offload = %s}"):format(value))
    end
  end)
end)
