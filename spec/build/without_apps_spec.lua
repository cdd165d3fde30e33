-- spec/build/without_apps_spec.lua: a build with LT_APPS=OFF is the library and `ltrain run`. Only
-- in ./dev test --exhaustive, as it builds all of ltrain.
-- tags: unsanitized
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT")
local BUILD <const> = os.getenv("LT_BUILD")
local FOLDER <const> = (BUILD or "") .. "/without_apps"
local LTRAIN <const> = FOLDER .. "/ltrain"

local function obstacle()
  if not ROOT or not BUILD then return "LT_ROOT and LT_BUILD name no folders" end
  if os.getenv("LT_EXHAUSTIVE") ~= "1" then return "only with --exhaustive: a whole build" end
end

describe("LT_APPS=OFF", function()
  local why = obstacle()

  it("builds and trains", function()
    if why then pending(why) end
    shell.need("cmake -G Ninja -S '%s' -B '%s' -DLT_APPS=OFF -DLT_WERROR=ON -DLT_SPECS=OFF "
      .. "-DLT_CUDA=OFF -DLT_MPI=OFF", ROOT, FOLDER)
    shell.need("ninja -C '%s' ltrain", FOLDER)
    local out = shell.need("cd '%s' && ./ltrain run '%s/examples/mlp.lua' --max_epochs 1 2>&1",
      FOLDER, ROOT)
    assert.matches("epoch 0", out)
    assert.is_nil(shell.need("ldd '%s'", LTRAIN):match "libedit")
  end)

  it("knows no command and no option of the apps", function()
    if why then pending(why) end
    for _, word in ipairs { "check", "dashboard", "inspect", "plot", "compare", "sweep" } do
      local status, out = shell.run("'%s' %s x 2>&1", LTRAIN, word)
      assert.equal(2, status, word)
      assert.matches("no command and no file is called '" .. word .. "'", out, 1, true)
    end
    local status, out = shell.run("'%s' run '%s/examples/mlp.lua' --dashboard 2>&1", LTRAIN, ROOT)
    assert.equal(2, status)
    assert.matches("unknown option --dashboard", out, 1, true)
  end)

  it("says what is missing where a script or a person asks for it", function()
    if why then pending(why) end
    for _, name in ipairs { "plot", "show", "show_histograms", "breakpoint" } do
      local status, out = shell.run("'%s' -e 'local lt = require \"ltrain\"; lt.%s()' 2>&1",
        LTRAIN, name)
      assert.equal(1, status)
      assert.matches(("(command line):1: lt.%s: this build is without the apps (LT_APPS=OFF)")
        :format(name), out, 1, true)
    end
    local status, out = shell.run("'%s' -i < /dev/null 2>&1", LTRAIN)
    assert.equal(2, status)
    assert.matches("this build has no prompt (LT_APPS=OFF)", out, 1, true)
  end)
end)
