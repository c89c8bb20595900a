export { Configuration } from './configuration.ts'
export type { Configured, ConfigurationOptions } from './configuration.ts'
