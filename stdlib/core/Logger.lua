-- stdlib/core/Logger.lua: what a logger of the Trainer is. Subclasses override what they need.

local class = require "ltrain.core.class"

local Logger = class.extend(nil, "Logger")

Logger.extend = class.extend

--- true: every rank logs; else rank 0 alone.
Logger.all_ranks = false

--- Overridden: sets `log_dir`, the folder `<save_dir>/<name>/version_<version>`, and those three,
--- in a logger that writes files.
function Logger:init() end

--- Overridden: a row of numbers by name, at optimizer step `step`.
function Logger:log_metrics(metrics, step) end

--- Overridden: the hyper-parameters of the run, a table of plain values.
function Logger:log_hyperparams(params) end

--- Overridden: make sure that what was logged is on disk.
function Logger:save() end

--- Overridden: the run is over; status is "success", "failed" or "interrupted".
function Logger:finalize(status) self:save() end

--- Overridden: the run goes on from a checkpoint saved at `step`: forget what was logged after it.
function Logger:resume(step) end

return Logger
