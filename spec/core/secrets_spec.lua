-- spec/core/secrets_spec.lua: which values do not get into the files of a run.
local child = require "spec.cli.child"
local secrets = require "ltrain.core.secrets"

describe("names of secrets", function()
  it("are those of passwords, tokens and keys", function()
    for _, name in ipairs { "api_key", "--api-key", "apiKey", "OPENAI_API_KEY", "hf_token",
      "--token", "TOKEN", "accessToken", "password", "db_password", "client_secret",
      "AWS_SECRET_ACCESS_KEY", "credentials" } do
      assert.is_true(secrets.is_name(name), name)
    end
  end)

  it("are not those that only look alike", function()
    for _, name in ipairs { "lr", "bos_token", "eos_token", "pad_token_id", "max_tokens",
      "tokenizer", "tokens", "key", "sort_key", "key_padding_mask", "num_key_value_heads", "monkey",
      "author", "secretary", "compass" } do
      assert.is_false(secrets.is_name(name), name)
    end
  end)
end)

describe("secrets", function()
  it("are left out of commands in each form", function()
    assert.same({ "run", "--api_key=[redacted]", "--hf-token", "[redacted]", "HF_TOKEN=[redacted]",
      "--password", "--lr=1", "https://me:[redacted]@host/x", "bos_token=<s>" },
      secrets.command { "run", "--api_key=KEY", "--hf-token", "KEY", "HF_TOKEN=KEY", "--password",
        "--lr=1", "https://me:KEY@host/x", "bos_token=<s>" })
  end)

  it("are left out of tables within tables", function()
    assert.same({ lr = 1, db = { password = "[redacted]", name = "x" }, list = { 1, "a" },
      token = "[redacted]" }, secrets.values { lr = 1, db = { password = "KEY", name = "x" },
        list = { 1, "a" }, token = 5 })
  end)
end)

describe("the folder of a run", function()
  local SCRIPT <const> = [[
    local lt = require "ltrain"
    local args = lt.args { api_key = { "", "the key" }, lr = { 0.1, "rate" } }
    local net = lt.nn.Linear(1, 1)
    function net:training_step(batch) return self(batch):mean() end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = args.lr}) end
    lt.Trainer { max_epochs = 1, logger = { "csv", "tensorboard" } }:fit(net, { lt.ones(1, 1) })
  ]]

  local folder
  setup(function()
    folder = child.folder()
    child.write(folder .. "/train.lua", SCRIPT)
    local code, _, err = child.shell([[
      umask 077
      ltrain run train.lua --no-save-code -- --api_key=KEY123
      umask 022
      ltrain run train.lua --api_key KEY123]], { dir = folder })
    assert.equal(0, code, err)
  end)
  teardown(function() child.remove(folder) end)

  local function shell(command)
    local pipe <close> = assert(io.popen(("cd '%s/ltrain_logs' && %s"):format(folder, command)))
    return pipe:read "a"
  end

  it("has no key of the command line in any file", function()
    assert.equal("", shell "grep -rl KEY123 . || true")
    assert.matches("--api_key=[redacted]", shell "cat version_0/run.json", 1, true)
    assert.matches('"api_key":"[redacted]"', shell "tr -d ' ' <version_1/hparams.json", 1,
      true)
  end)

  it("has a copy of the script, but with --no-save-code", function()
    assert.equal("train.lua\n", shell "ls version_1/code")
    assert.equal("", shell "ls -d version_0/code 2>/dev/null || true")
  end)

  it("is the user's alone with a umask of 077", function()
    assert.equal("700\n600\n", shell "stat -c %a version_0 version_0/run.json")
    assert.equal("", shell "find version_0 -perm /077")
  end)
end)
