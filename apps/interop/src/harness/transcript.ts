import type { Kind } from './servers.ts'
import { serverUnderTest, reference, Server } from './servers.ts'

/** Runs a scenario on Apache ZooKeeper and on the server under test concurrently. Resolves to both transcripts, as lines. */
export async function onBoth(
  scenario: (server: Server) => Promise<string>,
  config: Readonly<Record<string, string | number>> = {},
  javaFlags: readonly string[] = [],
  /** Settings that differ between the two, such as a port. */
  own: (kind: Kind) => Readonly<Record<string, string | number>> = () => ({}),
): Promise<{ apache: string[]; zabra: string[] }> {
  const one = async (kind: Kind): Promise<string[]> => {
    await using server = await Server.start({ kind, config: { ...config, ...own(kind) }, javaFlags })
    try {
      return (await scenario(server)).split('\n')
    } catch (error) {
      throw new Error(`On ${kind}: ${String(error)}\nOutput of the server:\n${server.output.slice(-3000)}`, {
        cause: error,
      })
    }
  }
  const [apache, zabra] = await Promise.all([one(reference), one(serverUnderTest)])
  return { apache, zabra }
}
