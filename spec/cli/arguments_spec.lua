-- spec/cli/arguments_spec.lua: what follows a command word.
local arguments = require "ltrain.cli.arguments"
local commands = require "ltrain.cli.commands"

local ROWS <const> = {
  callbacks = { type = "object|table" },
  default_root_dir = { type = "string" },
  devices = { type = "integer|string", default = 1 },
  fast_dev_run = { type = "boolean|integer", default = false },
  logger = { type = "boolean|object" },
  max_epochs = { type = "integer", default = 1000, min = -1 },
  profiler = { type = "boolean|string" },
  val_check_interval = { type = "number", default = 1.0 },
}

local function parse(...)
  local parsed, wrong = arguments.parse(commands.by_name.run, { ... }, ROWS)
  if parsed and parsed.wrong then return nil, parsed.wrong end -- of a script without lt.args
  return parsed, wrong
end

local function override(name, ...)
  local parsed = assert(parse("model.lua", ...))
  return parsed.overrides[name].value
end

describe("the command line of a word", function()
  it("takes the script, options in both forms, and the script's arguments", function()
    local parsed = assert(parse("model.lua", "--max_epochs", "5", "--devices=2", "--", "--data",
      "x"))
    assert.equal("model.lua", parsed.script)
    assert.same({ max_epochs = { value = 5 }, devices = { value = 2 } }, parsed.overrides)
    assert.same({ "--data", "x" }, parsed.args)
  end)

  it("takes options before the script", function()
    local parsed = assert(parse("--fast_dev_run", "--max_epochs", "5", "model.lua"))
    assert.equal("model.lua", parsed.script)
    assert.is_true(parsed.overrides.fast_dev_run.value)
  end)

  it("reads dashes within names as underscores", function()
    assert.equal(5, override("max_epochs", "--max-epochs", "5"))
  end)

  it("keeps the word's own options apart", function()
    local parsed = assert(parse("model.lua", "--seed", "7", "--ckpt_path", "last"))
    assert.same({ seed = 7, ckpt_path = "last" }, parsed.options)
    assert.same({}, parsed.overrides)
  end)

  it("keeps a number of a text option as text", function()
    assert.equal("5", override("default_root_dir", "--default_root_dir", "5"))
    assert.equal("true", override("default_root_dir", "--default_root_dir", "true"))
  end)

  it("keeps 1 and 1.0 apart", function()
    assert.equal("integer", math.type(override("val_check_interval", "--val_check_interval", "1")))
    assert.equal("float", math.type(override("val_check_interval", "--val_check_interval", "1.0")))
  end)

  it("takes negative numbers, texts where numbers do not fit, and false", function()
    assert.equal(-1, override("max_epochs", "--max_epochs", "-1"))
    assert.equal("0,1", override("devices", "--devices", "0,1"))
    assert.is_false(override("logger", "--logger", "false"))
    assert.equal("simple", override("profiler", "--profiler", "simple"))
  end)

  it("gives a flag alone the value true, whatever follows", function()
    assert.is_true(override("logger", "--logger"))
    assert.is_true(override("profiler", "--profiler", "--logger"))
    assert.equal(3, override("fast_dev_run", "--fast_dev_run", "3"))
  end)

  it("lets nil stand for the default", function()
    local parsed = assert(parse("model.lua", "--max_epochs", "nil"))
    assert.same({}, parsed.overrides.max_epochs)
  end)

  it("stops at --help", function()
    assert.is_true(assert(parse("--help")).help)
    assert.is_true(assert(parse("model.lua", "-h")).help)
  end)

  for _, case in ipairs {
    { { "model.lua", "--max_epoch", "5" },
      "run: unknown option --max_epoch; did you mean --max_epochs?" },
    { { "model.lua", "--sed", "5" }, "run: unknown option --sed; did you mean --seed?" },
    { { "model.lua", "--zzzz", "5" }, "run: unknown option --zzzz" },
    { { "model.lua", "-x" }, "run: unknown option -x" },
    { { "model.lua", "--max_epochs" }, "run: --max_epochs needs a value" },
    { { "model.lua", "--max_epochs", "--", "5" }, "run: --max_epochs needs a value" },
    { { "model.lua", "--max_epochs", "five" },
      "run: --max_epochs must be an integer: got 'five'" },
    { { "model.lua", "--max_epochs", "2.5" }, "run: --max_epochs must be an integer: got 2.5" },
    { { "model.lua", "--max_epochs=-7" }, "run: --max_epochs must be at least -1: got -7" },
    { { "model.lua", "--seed", "x" }, "run: --seed must be an integer: got 'x'" },
    { { "model.lua", "--callbacks", "x" },
      "run: --callbacks cannot be given on the command line: it takes an object or a table" },
    { { "model.lua", "data" },
      "run: unexpected 'data': the script's own arguments come after --" },
    { { "--max_epochs", "5" }, "run: which script?" },
    { { "--zzzz", "model.lua" }, "run: unknown option --zzzz" },
  } do
    it("refuses `" .. table.concat(case[1], " ") .. "`", function()
      local parsed, wrong = parse(table.unpack(case[1]))
      assert.is_nil(parsed)
      assert.equal(case[2], wrong:gsub("^.-%.lua:%d+: ", ""))
    end)
  end
end)
