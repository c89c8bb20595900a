export { AtomicValue, Counter } from './atomic-value.ts'
export type { AtomicValueOptions, CounterOptions, Versioned } from './atomic-value.ts'
export { bigEndian, decimal } from './decide.ts'
