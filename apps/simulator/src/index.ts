/** What judges a history of requests and replies, for runs of real processes too. */
export { checkers, type Evidence } from './checkers/index.ts'
export {
  committedHistoryOf,
  DistinctTransactions,
  readServerLog,
  type ServerFiles,
} from './history/committed-history.ts'
export { History, type ClientEvent, type Operation } from './history/records.ts'
export { RecordingConnection } from './participants/recording-connection.ts'
export { committedTransactions } from './simulation/committed-transactions.ts'
