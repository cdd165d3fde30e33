-- spec/apps/plan/mesh_spec.lua: rows of `ltrain plan` for experts and for replicas on a mesh.
-- tags: slow
local child = require "spec.cli.child"
local lt = require "ltrain"

local EXPERTS <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.embed, self.moe, self.head = nn.Linear(16, 64), nn.MoE(64, 128, 8, {top_k = 2}),
    nn.Linear(64, 4)
end
function Net:configure_model()
  local mesh = self.device_mesh
  if mesh and self.trainer.strategy.expert_parallel_size > 1 then
    lt.parallelize(self, mesh:sub "expert_parallel", {moe = lt.parallel.ExpertParallel()})
  end
end
function Net:training_step(batch)
  return lt.mse_loss(self.head(self.moe(self.embed(batch[1]))), batch[2])
end
function Net:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 1e-3}) end
return {model = Net(), trainer = {logger = false, max_epochs = 1, strategy = {"model_parallel",
    expert_parallel_size = 2, stage = STAGE}},
  data = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(256, 16), lt.randn(256, 4)),
    {batch_size = 16})}
]]

-- Bytes of f32: of all experts, of three matrices each, and of everything else.
local EXPERT <const> = 8 * 3 * 64 * 128 * 4
local REST <const> = (64 * 8 + 16 * 64 + 64 + 64 * 4 + 4) * 4

describe("ltrain plan on a mesh", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  local function rows_of(stage, ...)
    child.write(folder .. "/model.lua", (EXPERTS:gsub("STAGE", stage)))
    local status, out, err = child.run({ "plan", "model.lua", "--json", "--threads", "1", ... },
      { dir = folder })
    assert.equal(0, status, out .. err)
    local rows = {}
    for _, row in ipairs(lt.json.decode(out).strategies) do rows[row.name] = row end
    return rows
  end

  it("has rows of experts that are divided, which tokens go to and come from", function()
    local rows = rows_of(0, "--devices", "8")
    assert.equal(EXPERT + REST, rows.ddp.parameters)
    for size = 2, 8 do
      local row = rows["expert_parallel_size " .. size]
      if 8 % size == 0 then
        assert.equal(EXPERT // size + REST, row.parameters)
        -- 16 samples have two experts each; to them and back, in forward and in backward.
        assert.same({ calls = 4, bytes = 4 * 32 * 64 * 4 }, row.collectives.all_to_all)
        assert.equal(8, row.data_ranks)
      else
        assert.is_nil(row)
      end
    end
    assert.is_nil(rows["replicas 'machines'"])
  end)

  it("has a row of all shards on each machine, where the mesh shards and there are several",
    function()
      assert.is_nil(rows_of(1, "--devices", "4")["replicas 'machines'"])
      local rows = rows_of(1, "--devices", "4", "--nodes", "2")
      -- Two moments: of experts of 2 ranks, on 2 ranks of a machine each; the rest on its 4.
      local row, counters = rows["replicas 'machines'"], 1024
      local wanted = 2 * (EXPERT // 2 // 2 + REST // 4)
      assert.is_true(row.state >= wanted and row.state <= wanted + counters,
        ("%d of %d"):format(row.state, wanted))
      assert.is_true(rows["expert_parallel_size 2"].state < row.state)
    end)
end)
