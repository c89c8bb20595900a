import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { apacheJar } from './servers.ts'

const works = (program: string, args: string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0

export const python = '/usr/bin/python3'
export const cliMt = '/usr/lib/zookeeper/bin/cli_mt'

const probes = {
  apache: () =>
    !existsSync(apacheJar)
      ? `${apacheJar} is absent; install Debian's zookeeper package`
      : !works('java', ['-version'])
        ? 'java does not run; install a Java runtime'
        : undefined,
  kazoo: () =>
    works(python, ['-c', 'import kazoo']) ? undefined : "kazoo is absent; install Debian's python3-kazoo",
  cliMt: () => (existsSync(cliMt) ? undefined : `${cliMt} is absent; install Debian's zookeeper-bin`),
} as const

export type Peer = keyof typeof probes

/** Why a suite cannot run here, or undefined. The reason is printed, so that a skipped suite is never a silent one. */
export function missing(...peers: readonly Peer[]): string | undefined {
  const reasons = peers.map((peer) => probes[peer]()).filter((reason) => reason !== undefined)
  if (reasons.length === 0) return undefined
  console.warn(`Skipped: ${reasons.join('; ')}`)
  return reasons.join('; ')
}
