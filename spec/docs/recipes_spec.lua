-- spec/docs/recipes_spec.lua: the recipes of docs/adding.md, followed in a copy of the tree: their
-- blocks are written, and what each says proves it. Prints how many files a newcomer touches.
-- tags: exhaustive, slow
local child = require "spec.cli.child"
local recipes = require "spec.docs.recipes"

local ROOT <const> = os.getenv "LT_ROOT" or "."
local BUILD <const> = os.getenv "LT_BUILD"

-- What ./dev has set for this run, and is not for that of the copy.
local CLEAN <const> = "env -u LT_BUILD -u LT_ROOT -u LTRAIN -u LT_EXHAUSTIVE -u LT_TEST_TOTALS "
  .. "-u LT_TEST_SEED -u LT_PRELOAD -u LT_SANITIZE LT_TEST_DEVICES=none LT_WERROR=1 "
  .. "CCACHE_NOHASHDIR=1 CCACHE_BASEDIR='%s' "

describe("the recipe for", function()
  local tree

  setup(function()
    tree = child.folder()
    assert(os.execute(("cd '%s' && git ls-files -co --exclude-standard -z | "
      .. "xargs -0 cp -a --parents -t '%s' 2>/dev/null; test -e '%s/dev'")
      :format(ROOT, tree, tree)))
  end)
  teardown(function() child.remove(tree) end)

  local function must(command)
    local status, out, err = child.shell(("%s %s 2>&1"):format(CLEAN:format(tree), command),
      { dir = tree, seconds = 1800 }) -- a row can mean that all of C is compiled again
    assert(status == 0, ("%s: exit status %s\n%s"):format(command, status, (out .. err):sub(-6000)))
  end

  for _, section in ipairs(recipes.of(ROOT .. "/docs/adding.md")) do
    if #section.edits > 0 then
      it(("%s: holds"):format(section.title), function()
        local count <const> = recipes.follow(section, tree)
        print(("%d files: %s"):format(count, section.title))
        assert(#section.commands > 0, "no proof")
        for _, command in ipairs(section.commands) do must(command) end
      end)
    elseif section.title:find "^A device" then
      it(("%s: holds"):format(section.title), function()
        if not BUILD then return pending "LT_BUILD names no build folder" end
        assert.equal(2, #section.shell)
        print(("1 file: %s"):format(section.title))
        must "./dev build all"
        must(("cmake --install build --prefix '%s/usr'"):format(tree))
        must((section.shell[1]:gsub("<prefix>", tree .. "/usr"):gsub("%s+$", "")))
        for command in section.shell[2]:gmatch "[^\n]+" do
          must(("PATH=%s/build:$PATH sh -c '%s'"):format(tree, command))
        end
      end)
    end
  end
end)
