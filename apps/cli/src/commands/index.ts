import type { CommandModule } from '../context.ts'

/** A command by its names, whose module is loaded only when a command line may need it. */
export interface CommandEntry {
  readonly names: readonly string[]
  readonly load: () => Promise<CommandModule>
}

const entry = (names: string, load: () => Promise<CommandModule>): CommandEntry => ({
  names: names.split(' '),
  load,
})

/** The commands under the headings of `--help`. */
export const commandGroups: readonly (readonly [heading: string, commands: readonly CommandEntry[]])[] = [
  [
    'Read:',
    [
      entry('ls', async () => (await import('./ls.ts')).ls),
      entry('tree', async () => (await import('./tree.ts')).tree),
      entry('get', async () => (await import('./get.ts')).get),
      entry('stat', async () => (await import('./stat.ts')).stat),
      entry('get-acl getAcl', async () => (await import('./get-acl.ts')).getAcl),
      entry('find', async () => (await import('./find.ts')).find),
      entry('du', async () => (await import('./du.ts')).du),
      entry('ephemerals', async () => (await import('./ephemerals.ts')).ephemerals),
      entry('watch', async () => (await import('./watch.ts')).watch),
      entry('diff', async () => (await import('./diff.ts')).diff),
    ],
  ],
  [
    'Change:',
    [
      entry('create', async () => (await import('./create.ts')).create),
      entry('set', async () => (await import('./set.ts')).set),
      entry('edit', async () => (await import('./edit.ts')).edit),
      entry('set-acl setAcl', async () => (await import('./set-acl.ts')).setAcl),
      entry('delete rm', async () => (await import('./delete.ts')).remove),
      entry('delete-all deleteall', async () => (await import('./deleteall.ts')).deleteall),
      entry('txn', async () => (await import('./txn.ts')).txn),
      entry('quota', async () => (await import('./quota.ts')).quota),
      entry('export', async () => (await import('./export.ts')).exportTree),
      entry('import', async () => (await import('./import.ts')).importTree),
      entry('mirror', async () => (await import('./mirror.ts')).mirror),
    ],
  ],
  [
    'Run a command:',
    [
      entry('lock', async () => (await import('./lock.ts')).lock),
      entry('elect', async () => (await import('./elect.ts')).elect),
    ],
  ],
  [
    'Files of a server:',
    [
      entry('log', async () => (await import('./log.ts')).log),
      entry('snapshot', async () => (await import('./snapshot.ts')).snapshot),
      entry('recover', async () => (await import('./recover.ts')).recover),
      entry('initialize', async () => (await import('./data.ts')).initialize),
      entry('purge', async () => (await import('./data.ts')).purgeFiles),
      entry('audit', async () => (await import('./audit.ts')).audit),
      entry('cert', async () => (await import('./cert.ts')).cert),
    ],
  ],
  [
    'Backups:',
    [
      entry('backup', async () => (await import('./backup.ts')).backup),
      entry('restore', async () => (await import('./restore.ts')).restore),
    ],
  ],
  [
    'Ensembles:',
    [
      entry('cluster', async () => (await import('./cluster.ts')).cluster),
      entry('member', async () => (await import('./member.ts')).member),
      entry('upgrade', async () => (await import('./upgrade.ts')).upgrade),
      entry('drain', async () => (await import('./drain.ts')).drain),
      entry('transfer', async () => (await import('./cluster.ts')).transfer),
      entry('session', async () => (await import('./session.ts')).session),
      entry('admin', async () => (await import('./admin.ts')).admin),
      entry('events', async () => (await import('./events.ts')).events),
      entry('top', async () => (await import('./top.ts')).top),
      entry('watches', async () => (await import('./watches.ts')).watches),
      entry('support-bundle', async () => (await import('./support-bundle.ts')).supportBundle),
      entry('connection', async () => (await import('./session.ts')).connection),
    ],
  ],
  [
    'Servers and sessions:',
    [
      entry('shell', async () => (await import('./shell.ts')).shell),
      entry('doctor', async () => (await import('./doctor.ts')).doctor),
      entry('status', async () => (await import('./status.ts')).status),
      entry('context', async () => (await import('./context.ts')).contexts),
      entry('config', async () => (await import('./config.ts')).config),
      entry('whoami', async () => (await import('./whoami.ts')).whoami),
      entry('digest', async () => (await import('./digest.ts')).digest),
      entry('sync', async () => (await import('./sync.ts')).sync),
      entry('completion', async () => (await import('./completion.ts')).completion),
      entry('complete', async () => (await import('./completion.ts')).complete),
      entry('man', async () => (await import('./man.ts')).man),
      entry('bench', async () => (await import('./bench.ts')).bench),
    ],
  ],
]

/** Returns the commands that a command line may name; all for one that names none, or is about commands. */
export async function loadCommands(
  argv: readonly string[],
): Promise<(readonly [heading: string, commands: readonly CommandModule[]])[]> {
  const isNamed = ({ names }: CommandEntry): boolean => names.some((name) => argv.includes(name))
  const readsAll = ['help', 'complete', 'man'].some((name) => argv.includes(name))
  const loadsAll = readsAll || !commandGroups.some(([, entries]) => entries.some(isNamed))
  return Promise.all(
    commandGroups.map(async ([heading, entries]) => {
      const needed = entries.filter((one) => loadsAll || isNamed(one))
      return [heading, await Promise.all(needed.map(({ load }) => load()))] as const
    }),
  )
}
