-- spec/apps/dashboard/assets_spec.lua: the files of the dashboard's page within the library.
local assets = require "ltrain.apps.dashboard.assets"
local c = require "ltrain.c"

local FOLDER <const> = (os.getenv("LT_ROOT") or ".") .. "/stdlib/apps/dashboard/page/"

local function files()
  local list = c.io.list_folder(FOLDER) or {}
  assert(#list > 20, #list)
  return list
end

describe("assets", function()
  it("has every file of the page as it is", function()
    for _, name in ipairs(files()) do
      assert.equal(c.io.read_file(FOLDER .. name), c.runtime.asset(name), name)
      assert.equal(c.runtime.asset(name), assets.get(name), name)
    end
  end)

  it("has nothing else", function()
    for _, name in ipairs { "", ".", "..", "x.js", "../init.lua", "page/main.js", "/etc/passwd",
      "main.js\0.png", "main.js/" } do
      assert.is_nil(assets.get(name), name)
    end
  end)

  it("says what is missing where there is no dygraphs", function()
    if c.runtime.asset "dygraph.min.js" then
      assert.is_nil(assets.problem())
      assert.is_nil(assets.get("dygraph.min.js"):find "sourceMappingURL")
    else
      assert.matches("this build has no charts.*libjs%-dygraphs", assets.problem())
    end
  end)

  -- What a run has logged is set as text: these would make HTML or code of it.
  it("never makes HTML or code of text", function()
    for _, name in ipairs(files()) do
      local text = c.io.read_file(FOLDER .. name)
      for _, word in ipairs { "innerHTML", "outerHTML", "insertAdjacentHTML", "document%.write",
        "eval%(", "new Function", "srcdoc", "style=", "onclick=", "https?://" } do
        assert.is_nil(text:gsub("http://www%.w3%.org/2000/svg", ""):match(word), name)
      end
    end
  end)
end)
