import type { ShellCommand } from '../command.ts'
import type { WatchKind } from '../shell-watches.ts'

const kinds: Readonly<Record<string, readonly WatchKind[]>> = {
  '-c': ['children'],
  '-d': ['data', 'exists'],
  '-p': ['persistent'],
  '-r': ['persistentRecursive'],
}
const all: readonly WatchKind[] = ['data', 'exists', 'children', 'persistent', 'persistentRecursive']

/** Removes watches at a path. */
export const removeWatches: ShellCommand = {
  usage: 'removewatches path [-c|-d|-p|-r|-a] [-l]',
  flags: ['-c', '-d', '-p', '-r', '-a', '-l'],
  minArgs: 1,
  run(shell, { flags, words }) {
    const named = [...flags].flatMap((flag) => kinds[flag] ?? [])
    return shell.watches.remove(shell.path(words[0]), named.length === 0 ? all : named)
  },
}
