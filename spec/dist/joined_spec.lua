-- spec/dist/joined_spec.lua: lt.dist in ranks that mpirun started.
local child = require "spec.cli.child"
local ltrain <const> = os.getenv("LTRAIN") or "ltrain"

local function succeeds(command)
  return (os.execute(command .. " >/dev/null 2>&1"))
end

local function reason()
  if not succeeds "command -v mpirun" then return "no mpirun" end
  local pipe <close> = assert(io.popen(("'%s' info"):format(ltrain)))
  if not pipe:read("a"):match "mpi%s+yes" then return "no mpi in this build" end
end

-- Runs `code` on n ranks; `word` is one of the command line ("run"), nil: `ltrain FILE`.
local function mpirun(n, code, word)
  local folder = child.folder()
  child.write(folder .. "/script.lua", 'local lt = require "ltrain" ' .. code)
  local command = ("cd '%s' && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout "
    .. "-k 1 60 mpirun -q --oversubscribe -n %d '%s' %s script.lua 2>&1; echo \"exit $?\"")
    :format(folder, n, ltrain, word or "")
  local pipe <close> = assert(io.popen(command))
  local output, status = pipe:read("a"):match("^(.*)exit (%d+)\n$")
  return tonumber(status), output
end

local why <const> = reason()
local function test(name, fn)
  if why then pending(name .. " (" .. why .. ")") else it(name, fn) end
end

describe("ranks of mpirun", function()
  test("run what is launched, and all have rank 0's results", function()
    local status, output = mpirun(2, [[
      local a, b, c = lt.dist.launch(2, function(rank)
        local w = lt.tensor({1.0 + rank}, {requires_grad = true})
        lt.dist.all_gather(w * 2, {cat = true}):pow(2):sum():backward()
        return rank, lt.dist.all_reduce(rank + 1), lt.dist.all_gather(w.grad:item())
      end)
      print(("%d %d %g %g"):format(a, b, c[1], c[2]))
    ]])
    assert.equal(0, status, output)
    assert.equal("0 3 16 32\n0 3 16 32\n", output)
  end)

  test("say when a launch asks for another number", function()
    local status, output = mpirun(2, [[ lt.dist.launch(3, print) ]], "run")
    assert.equal(1, status, output)
    assert.matches("rank %d: script.lua:1: dist.launch: asked for 3 ranks in a world of 2", output)
  end)

  test("tell an error once, and end", function()
    for _, word in ipairs{ "", "run" } do
      local status, output = mpirun(2, [[
        if lt.dist.rank() == 1 then error "boom" end
        lt.dist.barrier()
      ]], word)
      assert.equal(1, status, output)
      assert.equal("ltrain: rank 1: script.lua:1: boom\n", output)
    end
  end)
end)
