// The account page: times of the reader's own zone, and questions that close by Escape and by a click elsewhere.
import './menus.js'
import './moments.js'
