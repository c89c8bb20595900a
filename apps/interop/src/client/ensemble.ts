import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../harness/ports.ts'
import { scratch, Server, type Kind } from '../harness/servers.ts'

/** Starts an ensemble. Resolves when all members serve. */
export async function startEnsemble(kind: Kind, size: number): Promise<Server[]> {
  const lines: Record<string, string | number> = { tickTime: 500, initLimit: 20, syncLimit: 10 }
  for (let id = 1; id <= size; id++) {
    lines[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}`
  }
  return Promise.all(
    Array.from({ length: size }, (_, i) => {
      const dataDir = scratch(`ensemble-${i + 1}`)
      writeFileSync(join(dataDir, 'myid'), `${i + 1}\n`)
      return Server.start({ kind, config: lines, dataDir })
    }),
  )
}
