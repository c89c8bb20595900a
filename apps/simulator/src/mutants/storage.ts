import { mutant, type ServerMutant } from './mutant.ts'

const logFile = 'persistence/log-file.ts'
const replay = 'persistence/replay.ts'

export const storage: readonly ServerMutant[] = [
  mutant(
    'acknowledge-before-sync',
    'Writes are acknowledged when the system has them, before they are on disk.',
    { servers: 1 },
    [[logFile, '{ create: true, durable })', '{ create: true, durable: false })']],
  ),
  mutant(
    'log-folder-not-synced',
    'The folder is not synced after a new log file is created.',
    { servers: 1 },
    [[logFile, 'if (isNew) await this.#options.disk.syncFolder(this.#options.folder)', '']],
  ),
  mutant(
    'unsynced-tail-trusted',
    'Recovery serves an unsynced tail of the log without making it durable.',
    { servers: 1 },
    [[replay, 'await rewriteTail(disk, folder, this.#newestFile.path, this.#newestFile.end)', '{}']],
  ),
  mutant('sync-error-ignored', 'A failed write of the log counts as done.', { servers: 1 }, [
    [logFile, 'await this.#writer!.write(piece, at)', 'await this.#writer!.write(piece, at).catch(() => {})'],
  ]),
  mutant(
    'sessions-lost-in-replay',
    'Recovery forgets sessions that were created after the newest snapshot.',
    { servers: 1 },
    [[replay, 'if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)', '']],
  ),
  mutant(
    'ended-sessions-return',
    'Recovery keeps sessions that ended after the newest snapshot.',
    { servers: 1 },
    [[replay, 'if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)', '']],
  ),
]
