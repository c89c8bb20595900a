import type { CommandModule } from '../context.ts'
import { bench } from './bench.ts'
import { cert } from './cert.ts'
import { config } from './config.ts'
import { create } from './create.ts'
import { initialize, purgeFiles } from './data.ts'
import { remove } from './delete.ts'
import { deleteall } from './deleteall.ts'
import { du } from './du.ts'
import { ephemerals } from './ephemerals.ts'
import { exportTree } from './export.ts'
import { find } from './find.ts'
import { getAcl } from './get-acl.ts'
import { get } from './get.ts'
import { importTree } from './import.ts'
import { log } from './log.ts'
import { ls } from './ls.ts'
import { quota } from './quota.ts'
import { recover } from './recover.ts'
import { setAcl } from './set-acl.ts'
import { set } from './set.ts'
import { shell } from './shell.ts'
import { snapshot } from './snapshot.ts'
import { stat } from './stat.ts'
import { status } from './status.ts'
import { sync } from './sync.ts'
import { tree } from './tree.ts'
import { watch } from './watch.ts'
import { whoami } from './whoami.ts'

/** The commands under the headings of `--help`. */
export const commandGroups: readonly (readonly [heading: string, commands: readonly CommandModule[]])[] = [
  ['Read:', [ls, tree, get, stat, getAcl, find, du, ephemerals, watch]],
  ['Change:', [create, set, setAcl, remove, deleteall, quota, exportTree, importTree]],
  ['Files of a server:', [log, snapshot, recover, initialize, purgeFiles, cert]],
  ['Servers and sessions:', [shell, status, config, whoami, sync, bench]],
]
