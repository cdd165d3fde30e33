-- stdlib/cli/config_option.lua: --config, of every subcommand that runs a script.
return { name = "config", type = "string", value = "FILE", repeated = "configs",
  doc = "values from a YAML or JSON file, or a Lua file that returns a table: groups trainer, "
    .. "model, data and args, or single names; later files override earlier ones, and flags "
    .. "override files" }
