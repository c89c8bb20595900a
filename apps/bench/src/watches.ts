import { RawSession } from './load.ts'

/** Opens sessions and sets one-shot watches on paths of their own, and tells when each part is done. */
export async function holdWatches(
  port: number,
  { connections, watches }: { readonly connections: number; readonly watches: number },
  connected: () => void,
  watching: () => void,
): Promise<void> {
  const sessions: RawSession[] = []
  while (sessions.length < connections) {
    const some = Math.min(100, connections - sessions.length)
    sessions.push(...(await Promise.all(Array.from({ length: some }, () => RawSession.open(port)))))
  }
  connected()
  const each = Math.ceil(watches / connections)
  for (const [index, session] of sessions.entries()) {
    await new Promise<void>((resolve, reject) => {
      let left = each
      session.onFailure = reject
      session.onReply = () => {
        if (--left === 0) resolve()
      }
      for (let k = 1; k <= each; k++) session.watch(k, `/watched/${index}/node-${k}`)
      session.flush()
    })
  }
  watching()
  for (const session of sessions) session.close()
}
