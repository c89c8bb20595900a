import type { ServerMutant } from './mutant.ts'

const logFile = 'packages/server/src/persistence/log-file.ts'
const replay = 'packages/server/src/persistence/replay.ts'

export const storage: readonly ServerMutant[] = [
  {
    name: 'acknowledge-before-sync',
    defect: 'Writes are acknowledged when the system has them, before they are on disk.',
    servers: 1,
    changes: [
      { file: logFile, find: '{ create: true, durable })', replace: '{ create: true, durable: false })' },
    ],
  },
  {
    name: 'log-folder-not-synced',
    defect: 'The folder is not synced after a new log file is created.',
    servers: 1,
    changes: [
      {
        file: logFile,
        find: 'if (isNew) await this.#options.disk.syncFolder(this.#options.folder)',
        replace: '',
      },
    ],
  },
  {
    name: 'unsynced-tail-trusted',
    defect: 'Recovery serves an unsynced tail of the log without making it durable.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'await rewriteTail(disk, folder, this.#newestFile.path, this.#newestFile.end)',
        replace: '{}',
      },
    ],
  },
  {
    name: 'sync-error-ignored',
    defect: 'A failed write of the log counts as done.',
    servers: 1,
    changes: [
      {
        file: logFile,
        find: 'await this.#writer!.write(bytes, this.#position)',
        replace: 'await this.#writer!.write(bytes, this.#position).catch(() => {})',
      },
    ],
  },
  {
    name: 'sessions-lost-in-replay',
    defect: 'Recovery forgets sessions that were created after the newest snapshot.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)',
        replace: '',
      },
    ],
  },
  {
    name: 'ended-sessions-return',
    defect: 'Recovery keeps sessions that ended after the newest snapshot.',
    servers: 1,
    changes: [
      {
        file: replay,
        find: 'if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)',
        replace: '',
      },
    ],
  },
]
