-- spec/cuda/failing_spec.lua: each call of the CUDA runtime, cuBLASLt and cuDNN fails in turn. The
-- program ends with an error in ltrain's words, or does not need that call and computes what is
-- right: never a crash, a hang or another result. All calls with LT_EXHAUSTIVE=1, else some.
-- tags: slow
local counts = require "spec.cuda.counts"

local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SOME <const> = 8 -- calls of each kind of work, where not all are tried
local LTRAIN <const> = os.getenv "LTRAIN" or "ltrain"

local function read_all(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function folder()
  local pipe <close> = assert(io.popen "mktemp -d")
  return pipe:read()
end

-- Runs the work with call n failing (0: none): how it ended, what it printed, what it said.
local function run(name, n, dir)
  local ok, how, code = os.execute(
    ("LUA_PATH_5_4='./?.lua;;' FAKERT=late FAKERT_FAIL=%d timeout 60 '%s' "
      .. "spec/cuda/failing_work.lua %s '%s' >'%s/out' 2>'%s/err' </dev/null"):format(n,
      LTRAIN, name, dir, dir, dir))
  local out = read_all(dir .. "/out")
  return { ok = ok == true, code = how == "exit" and code or 128 + code,
           out = out:gsub("%d+ calls\n", ""), calls = tonumber(out:match "(%d+) calls\n"),
           err = read_all(dir .. "/err") }
end

-- What is wrong with a run, nil: nothing.
local function fault_of(one, right)
  if one.ok then return one.out ~= right and "another result:\n" .. one.out or nil end
  if one.code == 124 then return "still ran after 60 s" end
  if one.code ~= 1 then return ("ended with status %d:\n%s"):format(one.code, one.err) end
  local said = one.err:match "^[^\n]*%S"
  if not said or said:find "fakert:" or said:find "fake cu" then return "said: " .. one.err end
  local named = one.err:find "%(cuda%w+%)" or one.err:find "CUBLAS_" or one.err:find "CUDNN_"
    or one.err:find "memory" or one.err:find "cuda"
  return not named and "no reason in: " .. one.err or nil
end

describe("a failing call of CUDA", function()
  for _, name in ipairs { "copy", "matmul", "conv", "fit", "checkpoint" } do
    local title = ("ends %s with a clear error, or changes nothing"):format(name)
    if not counts then
      pending(title .. " (only the fake runtime fails when it is told)")
    else
      it(title, function()
        local dir = folder()
        local whole = run(name, 0, dir)
        assert.equal("", whole.err)
        assert.is_true(whole.ok and whole.calls > SOME)
        local failed = 0
        for n = 1, whole.calls, EXHAUSTIVE and 1 or math.ceil(whole.calls / SOME) do
          local one = run(name, n, dir)
          local fault = fault_of(one, whole.out)
          assert(not fault, ("call %d of %d: %s"):format(n, whole.calls, fault))
          if not one.ok then failed = failed + 1 end
        end
        assert.is_true(failed > 0)
        os.execute("rm -rf '" .. dir .. "'")
      end)
    end
  end
end)
