import type { ShellCommand } from '../command.ts'
import { addAuth } from './add-auth.ts'
import { addWatch } from './add-watch.ts'
import { clear } from './clear.ts'
import { close } from './close.ts'
import { config } from './config.ts'
import { connect } from './connect.ts'
import { create } from './create.ts'
import { delQuota } from './del-quota.ts'
import { remove } from './delete.ts'
import { deleteall } from './deleteall.ts'
import { getAcl } from './get-acl.ts'
import { getAllChildrenNumber } from './get-all-children-number.ts'
import { getEphemerals } from './get-ephemerals.ts'
import { get } from './get.ts'
import { help } from './help.ts'
import { history } from './history.ts'
import { listQuota } from './list-quota.ts'
import { ls } from './ls.ts'
import { printWatches } from './print-watches.ts'
import { exit, quit } from './quit.ts'
import { reconfig } from './reconfig.ts'
import { redo } from './redo.ts'
import { removeWatches } from './remove-watches.ts'
import { setAcl } from './set-acl.ts'
import { setQuota } from './set-quota.ts'
import { set } from './set.ts'
import { stat } from './stat.ts'
import { sync } from './sync.ts'
import { version } from './version.ts'
import { whoami } from './whoami.ts'

const all: readonly ShellCommand[] = [
  addAuth,
  addWatch,
  clear,
  close,
  config,
  connect,
  create,
  delQuota,
  remove,
  deleteall,
  getAcl,
  getAllChildrenNumber,
  getEphemerals,
  get,
  help,
  history,
  listQuota,
  ls,
  printWatches,
  quit,
  exit,
  reconfig,
  redo,
  removeWatches,
  setAcl,
  setQuota,
  set,
  stat,
  sync,
  version,
  whoami,
]

/** The commands of the shell by their names. */
export const shellCommands: ReadonlyMap<string, ShellCommand> = new Map(
  all.map((command) => [command.usage.split(' ', 1)[0]!, command]),
)
