import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'
import { curatorJars } from './curator.ts'
import { apacheJar, nettyJars } from './servers.ts'

const works = (program: string, args: string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0

/** Whether tests play all combinations, and for minutes. */
export const isLong = process.env['ZABRA_LONG_TESTS'] === '1'

export const python = '/usr/bin/python3'
/** A Python with moto. */
export const motoPython = process.env['ZABRA_PYTHON'] ?? 'python3'
/** The program of Schemathesis, which tests an API by its document. */
export const schemathesis = process.env['ZABRA_SCHEMATHESIS'] ?? 'schemathesis'
export const chromium = '/usr/bin/chromium'
export const cliMt = '/usr/lib/zookeeper/bin/cli_mt'

/** Returns why Java programs cannot be compiled; undefined if they can. */
const withoutJavac = (): string | undefined =>
  works('javac', ['-version']) ? undefined : 'javac does not run; install a Java development kit'

const probes = {
  apache: () =>
    !existsSync(apacheJar)
      ? `${apacheJar} is absent; install Debian's zookeeper package`
      : !works('java', ['-version'])
        ? 'java does not run; install a Java runtime'
        : undefined,
  newestApache: () =>
    existsSync(process.env['ZABRA_APACHE_39'] ?? '')
      ? undefined
      : 'ZABRA_APACHE_39 names no folder with the jars of Apache ZooKeeper 3.9',
  netty: () => {
    const absent = nettyJars.filter((jar) => !existsSync(jar))
    return absent.length === 0 ? undefined : `${absent.join(', ')}: absent; install Debian's libnetty-java`
  },
  curator: () => {
    const absent = curatorJars.filter((jar) => !existsSync(jar))
    return absent.length > 0
      ? `${absent.join(', ')}: absent; install Debian's libcurator-recipes-java and libcurator-discovery-java`
      : withoutJavac()
  },
  javac: withoutJavac,
  python: () => (works(python, ['-c', '']) ? undefined : `${python} does not run; install Python 3`),
  kazoo: () =>
    works(python, ['-c', 'import kazoo']) ? undefined : "kazoo is absent; install Debian's python3-kazoo",
  pureSasl: () =>
    works(python, ['-c', 'import puresasl'])
      ? undefined
      : "pure-sasl is absent; install Debian's python3-pure-sasl",
  go: () =>
    spawnSync('go', ['mod', 'download'], {
      cwd: join(import.meta.dirname, '../histories/porcupine'),
      stdio: 'ignore',
      timeout: 60_000,
    }).status === 0
      ? undefined
      : 'go is absent or cannot download Porcupine; install Go 1.21 or later',
  chromium: () => (existsSync(chromium) ? undefined : `${chromium} is absent; install Debian's chromium`),
  curl: () => (works('curl', ['--version']) ? undefined : "curl does not run; install Debian's curl"),
  cc: () => (works('cc', ['--version']) ? undefined : 'cc does not run; install a C compiler'),
  prometheus: () =>
    works('prometheus', ['--version'])
      ? undefined
      : "prometheus does not run; install Debian's prometheus package",
  moto: () =>
    works(motoPython, ['-c', 'import moto.server, flask'])
      ? undefined
      : `${motoPython} has no moto; install moto[server] of PyPI, and name its Python with ZABRA_PYTHON`,
  schemathesis: () =>
    works(schemathesis, ['--version'])
      ? undefined
      : `${schemathesis} does not run; install schemathesis of PyPI, and name its program with ZABRA_SCHEMATHESIS`,
  cliMt: () => (existsSync(cliMt) ? undefined : `${cliMt} is absent; install Debian's zookeeper-bin`),
} as const

export type Requirement = keyof typeof probes

/** Returns why a suite cannot run here, or undefined when all its requirements are installed. */
export function missingRequirements(...peers: readonly Requirement[]): string | undefined {
  const reasons = peers.map((peer) => probes[peer]()).filter((reason) => reason !== undefined)
  return reasons.length === 0 ? undefined : reasons.join('; ')
}

/** Defines a suite that requires third-party software. Without it the suite is skipped, and its name gives the reason. */
export function describeWith(peers: readonly Requirement[], name: string, suite: () => void): void {
  const reason = missingRequirements(...peers)
  if (reason === undefined) describe(name, suite)
  else describe.skip(`${name} (skipped: ${reason})`, suite)
}

/** Returns the Node executables in `ZABRA_NODES`, paths separated by colons, with their versions. */
export const otherNodes = (): (readonly [name: string, path: string])[] =>
  programsIn('ZABRA_NODES').map(({ path, version }) => [version, path] as const)

/** Returns the Deno and Bun executables in `ZABRA_RUNTIMES`, paths separated by colons, with the arguments that run a script. */
export const otherRuntimes = (): (readonly [name: string, program: string, args: readonly string[]])[] =>
  programsIn('ZABRA_RUNTIMES').map(({ path, version }) =>
    version.startsWith('deno')
      ? ([version, path, ['run', '--allow-all', '--quiet']] as const)
      : ([`bun ${version}`, path, ['run']] as const),
  )

/** Returns the executables that run, with their version output. */
function programsIn(variable: string): { readonly path: string; readonly version: string }[] {
  const paths = (process.env[variable] ?? '').split(':').filter((path) => path !== '')
  return paths.flatMap((path) => {
    const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
    return status === 0 ? [{ path, version: stdout.split('\n')[0]!.trim() }] : []
  })
}
