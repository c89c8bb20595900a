import { resolve } from 'node:path'
import { ScriptedPeer } from './scripted-peer.ts'
import { run, scratch } from './servers.ts'

export const curatorJars = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'curator-x-discovery',
  'jackson-databind',
].map((name) => `/usr/share/java/${name}.jar`)

/** Dependencies that Debian's packages do not declare, and a logger that drops everything. */
const others = ['zookeeper', 'jackson-core', 'jackson-annotations', 'slf4j-nop'].map(
  (name) => `/usr/share/java/${name}.jar`,
)
const source = resolve(import.meta.dirname, '../../java/Recipes.java')

let compiled: Promise<string> | undefined

/** Returns the class path of `java/Recipes.java`, which is compiled once per test file. */
function classPath(): Promise<string> {
  compiled ??= compile()
  return compiled
}

async function compile(): Promise<string> {
  const folder = scratch('curator')
  const path = [...curatorJars, ...others].join(':')
  const { code, output } = await run('javac', ['-nowarn', '-d', folder, '-cp', path, source])
  if (code !== 0) throw new Error(`javac ended with ${code}:\n${output}`)
  return `${folder}:${path}`
}

/** Starts the Curator program in one scenario of `java/Recipes.java`. Resolves when it is connected. */
export async function startCurator(address: string, scenario: string, rounds: number): Promise<ScriptedPeer> {
  const flags = ['-Xmx256m', '-cp', await classPath()]
  return ScriptedPeer.start('java', [...flags, 'Recipes', address, scenario, String(rounds)])
}
